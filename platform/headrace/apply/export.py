"""Writing the document back: what `apply` of it would change is nothing. Secrets stay where they are."""

from decimal import Decimal
from typing import Any

import yaml
from django.db import transaction
from django.db.models import Prefetch

from billing.models import ExchangeRate, LegalEntity, Price
from engines.models import Pool, Provider
from headrace.apply import model_limits
from headrace.apply.budgets import written
from headrace.apply.invoicing import billing_document, legal_entity_document
from headrace.apply.prices import current_prices
from routing.models import Model, Route, Target
from tenants.models import ApiKey, Limits, ModelLimits, Tenant

Document = dict[str, Any]


@transaction.atomic
def export_document(*, tenant: str | None = None) -> str:
    """The configuration as YAML; with `tenant`, of that tenant alone."""
    document: Document = {}
    if tenant is None:
        document["legal_entities"] = [legal_entity_document(entity) for entity in LegalEntity.objects.all()]
        document["exchange_rates"] = [
            {"base": row.base, "quote": row.quote, "rate": row.rate, "from": row.day}
            for row in ExchangeRate.objects.order_by("base", "quote", "day")
        ]
        document["pools"] = [_pool(pool) for pool in Pool.objects.prefetch_related("replicas")]
        document["providers"] = [
            {"name": provider.name, "protocol": provider.protocol, "base_url": provider.base_url}
            for provider in Provider.objects.all()
        ]
        targets = Prefetch("route__targets", Target.objects.order_by("position"))
        models = list(Model.objects.prefetch_related(targets))
        prices = current_prices(models)
        document["models"] = [_model(model, prices[model.name]) for model in models]
    tenants = Tenant.objects.all() if tenant is None else Tenant.objects.filter(slug=tenant)
    keys = Prefetch("keys", ApiKey.objects.select_related("project"))
    related = tenants.select_related("billing_account").prefetch_related(
        "projects", "members__user", "budgets", "model_limits", keys
    )
    document["tenants"] = [_tenant(row) for row in related]
    filled = {section: entries for section, entries in document.items() if entries}
    return yaml.dump(filled, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000) if filled else ""


def _pool(pool: Pool) -> Document:
    return {
        "name": pool.name,
        "engine": pool.engine,
        "model": pool.model,
        "modalities": pool.modalities,
        "gpu_hour_cost": pool.gpu_hour_cost,
        "cost_currency": pool.cost_currency,
        "gpus_per_replica": pool.gpus_per_replica,
        "orders_by_priority": pool.orders_by_priority,
        "replicas": [{"name": r.name, "url": r.url, "enabled": r.enabled} for r in pool.replicas.all()],
    }


def _model(model: Model, prices: list[Price]) -> Document:
    entry = {
        "name": model.name,
        "context_window": model.context_window,
        "default_max_tokens": model.default_max_tokens,
        "enabled": model.enabled,
        "prices": [_price(price) for price in prices],
        "route": _route(model.route),
    }
    return {name: value for name, value in entry.items() if value != []}


def _price(price: Price) -> Document:
    names = ("target", "tenant", "currency", "input", "cached_input", "output", "cache_hit")
    entry = {name: value for name in names if (value := getattr(price, name)) not in ("", None)}
    return entry if price.is_fixed else entry | {"effective_from": price.effective_from.isoformat()}


def _route(route: Route) -> Document:
    targets = []
    for target in route.targets.all():
        entry = {"pool": target.pool_id} if target.pool_id else {"provider": target.provider_id}
        names = ("context_window", "conditions", "weight", "canary", "shadow")
        entry |= {"model": target.upstream_model} if target.upstream_model else {}
        targets.append(entry | {name: value for name in names if (value := getattr(target, name)) not in (None, {})})
    named = {"ttft": route.ttft_target, "tpot": route.tpot_target}
    latency = {name: seconds for name, seconds in named.items() if seconds is not None}
    return {
        "targets": targets,
        "policy": route.policy,
        "cache_scope": route.cache_scope,
        "unknown_fields": route.unknown_fields,
        "ignore_eos": route.ignore_eos,
        "timeouts": {
            "connect": route.connect_timeout,
            "first_byte": route.first_byte_timeout,
            "between_events": route.between_events_timeout,
            "total": route.total_timeout,
        },
        "queue": {"timeout": route.queue_timeout, "length": route.queue_length},
        **({"latency_targets": latency} if latency else {}),
    }


def _tenant(tenant: Tenant) -> Document:
    budgets, of_models = list(tenant.budgets.all()), list(tenant.model_limits.all())
    entry: Document = {
        "slug": tenant.slug,
        "name": tenant.name,
        "currency": tenant.currency,
        "time_zone": tenant.time_zone,
        "weight": tenant.weight,
        "suspended": tenant.is_suspended,
        **_billing(tenant),
        **({} if tenant.cached_input_weight == 1 else {"cached_input_weight": tenant.cached_input_weight}),
        **_limits(tenant, of_models),
        **written(budgets),
        "projects": [
            {
                "slug": p.slug,
                "name": p.name,
                **({} if p.weight == 1 else {"weight": p.weight}),
                **_limits(p, of_models, project=p.slug),
                **written(budgets, project=p.slug),
            }
            for p in tenant.projects.all()
        ],
        "members": [{"email": m.user.email, "role": m.role} for m in tenant.members.all() if m.user.email],
        "keys": [_key(key, of_models) | written(budgets, key=key.public_id) for key in tenant.keys.all()],
    }
    return {name: value for name, value in entry.items() if value != []}


def _billing(tenant: Tenant) -> Document:
    account = getattr(tenant, "billing_account", None)  # not every tenant has one
    return billing_document(account) if account else {}


def _key(key: ApiKey, of_models: list[ModelLimits]) -> Document:
    entry: Document = {"name": key.name, "project": key.project.slug, "models": key.models, "priority": key.priority}
    entry |= _limits(key, of_models, key=key.public_id)
    if key.expires_at:
        entry["expires_at"] = key.expires_at.isoformat()
    if key.is_revoked:
        entry["revoked"] = True
    return entry


def _limits(row: Limits, of_models: list[ModelLimits], **scope: str) -> Document:
    limits = row.limits | model_limits.written(of_models, **scope)
    return {"limits": limits} if limits else {}


class _Dumper(yaml.SafeDumper):
    """Lists indented under their key; whatever reads back as another type than text is quoted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = format(value.normalize(), "f")
    return dumper.represent_scalar("tag:yaml.org,2002:float" if "." in text else "tag:yaml.org,2002:int", text)


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    return _decimal(dumper, Decimal(str(value)))


_Dumper.add_representer(Decimal, _decimal)
_Dumper.add_representer(float, _float)
