"""What a document may say: its sections and their fields. A part not built yet is named, so that it is refused."""

from headrace.apply import model_limits
from headrace.apply.entries import Kind
from headrace.apply.reader import (
    address,
    amount,
    day,
    lines,
    moment,
    optional,
    percent,
    seconds,
    secret,
    text,
    texts,
    truth,
    weight,
    whole,
    wholes,
)
from tenants.models import LIMIT_FIELDS

LIMITS = {
    "limits": {name: (name, optional(whole)) for name in LIMIT_FIELDS}
    | {"models": (model_limits.FIELD, model_limits.read)}
}

BUDGET = Kind(
    "budget",
    "name",
    {"amount": amount, "period": text, "model": text, "hard": truth, "enabled": truth, "thresholds": wholes}
    | {"set_by": text},
    groups={"increase": {"amount": ("extra", optional(amount)), "until": ("extra_until", optional(moment))}},
    short="amount",
)

PROJECT = Kind("project", "slug", {"name": text, "weight": amount}, groups=LIMITS, children={"budgets": BUDGET})

MEMBER = Kind("member", "email", {"role": text}, short="role")

KEY = Kind(
    "key",
    "name",
    {
        "project": text,
        "models": texts,
        "priority": text,
        "expires_at": optional(moment),
        "secret": secret,
        "revoked": truth,
    },
    groups=LIMITS,
    children={"budgets": BUDGET},
    nameless=True,
)

# Lines of text are a list. Rates are percent; `minimum_fee` is in the tenant's currency, by the month.
LEGAL_ENTITY = Kind(
    "legal entity",
    "slug",
    {
        "name": text,
        "address": lines,
        "tax_id": text,
        "email": text,
        "company_data": lines,
        "invoice_prefix": text,
        "first_number": whole,
    },
)

BILLING = Kind(
    "billing of tenant",
    "",
    {
        "name": text,
        "address": lines,
        "tax_id": text,
        "email": text,
        "reference": text,
        "tax_rate": amount,
        "discount_percent": amount,
        "minimum_fee": amount,
        "payment_days": whole,
    },
)

TENANT = Kind(
    "tenant",
    "slug",
    {
        "name": text,
        "currency": text,
        "time_zone": text,
        "weight": amount,
        "suspended": truth,
        "legal_entity": optional(text),
        "cached_input_weight": weight,
    },
    groups=LIMITS,
    children={"projects": PROJECT, "members": MEMBER, "keys": KEY, "budgets": BUDGET},
    only={"billing": BILLING},
)

REPLICA = Kind("replica", "name", {"url": address, "enabled": truth}, short="url", nameless=True)

POOL = Kind(
    "pool",
    "name",
    {
        "engine": text,
        "model": text,
        "modalities": texts,
        "gpu_hour_cost": amount,
        "cost_currency": text,
        "gpus_per_replica": amount,
        "orders_by_priority": truth,
        "api_key": optional(secret),
        "admin_key": optional(secret),
    },
    children={"replicas": REPLICA},
)

PROVIDER = Kind("provider", "name", {"protocol": text, "base_url": address, "api_key": optional(secret)})

# `model` is the name to ask the target for; empty: the one the pool serves.
CONDITIONS = {
    "min_prompt_tokens": whole,
    "max_prompt_tokens": whole,
    "min_output_tokens": whole,
    "max_output_tokens": whole,
    "modalities": texts,
    "tools": truth,
    "tenants": texts,
    "projects": texts,
    "keys": texts,
    "tiers": texts,
}

TARGET = Kind(
    "target",
    "",
    {
        "pool": text,
        "provider": text,
        "model": text,
        "context_window": optional(whole),
        "weight": whole,
        "canary": percent,
        "shadow": percent,
    },
    groups={"conditions": {name: (name, read) for name, read in CONDITIONS.items()}},
    short="pool",
    nameless=True,
    ordered=True,
)

ROUTE = Kind(
    "route of model",
    "",
    {"policy": text, "cache_scope": text, "unknown_fields": text, "ignore_eos": truth},
    groups={
        "latency_targets": {"ttft": ("ttft_target", optional(seconds)), "tpot": ("tpot_target", optional(seconds))},
        "timeouts": {
            "connect": ("connect_timeout", seconds),
            "first_byte": ("first_byte_timeout", seconds),
            "between_events": ("between_events_timeout", seconds),
            "total": ("total_timeout", seconds),
        },
        "queue": {"timeout": ("queue_timeout", seconds), "length": ("queue_length", whole)},
    },
    children={"targets": TARGET},
)

# Units of `currency` per million tokens. Without `effective_from` it is the price from now on.
PRICE = Kind(
    "price",
    "",
    {
        "target": text,
        "tenant": text,
        "currency": text,
        "input": amount,
        "cached_input": amount,
        "output": amount,
        "cache_hit": optional(amount),
        "effective_from": moment,
    },
    nameless=True,
    ordered=True,
)

MODEL = Kind(
    "model",
    "name",
    {"context_window": whole, "default_max_tokens": whole, "enabled": truth},
    children={"prices": PRICE},
    only={"route": ROUTE},
)

# One unit of `base` is `rate` units of `quote` from that day on.
EXCHANGE_RATE = Kind(
    "exchange rate", "", {"base": text, "quote": text, "rate": amount, "from": day}, nameless=True, ordered=True
)

DOCUMENT = Kind(
    "document",
    "",
    {},
    children={
        "exchange_rates": EXCHANGE_RATE,
        "legal_entities": LEGAL_ENTITY,
        "pools": POOL,
        "providers": PROVIDER,
        "models": MODEL,
        "tenants": TENANT,
    },
)
