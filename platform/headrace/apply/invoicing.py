"""Planning who invoices (legal entities) and how each tenant is invoiced (billing accounts); and writing them back."""

from collections.abc import Mapping
from typing import Any

from billing.models import BillingAccount, LegalEntity
from headrace.apply.entries import Entry
from headrace.apply.plan import Plan
from headrace.apply.problems import near

_ENTITY = ("name", "address", "tax_id", "email", "company_data", "invoice_prefix")
_ACCOUNT = (
    "name", "address", "tax_id", "email", "reference", "tax_rate", "discount_percent", "minimum_fee", "payment_days",
)  # fmt: skip
_LINES = {"address", "company_data"}


def plan_legal_entities(plan: Plan, entries: list[Entry]) -> dict[str, LegalEntity]:
    """The entities by slug, those there and those planned. `first_number` counts for a new one alone: the series then
    goes on by itself."""
    entities: dict[str, LegalEntity] = LegalEntity.objects.in_bulk()
    for entry in entries:
        entity = entities.get(entry.name) or LegalEntity(slug=entry.name, name=entry.name)
        wanted = {field: given.value for field, given in entry.given.items() if field != "first_number"}
        if entity._state.adding:
            wanted |= {"next_number": entry.get("first_number", 1)}
            wanted.setdefault("invoice_prefix", f"{entry.name.upper()}-"[-20:])
        plan.put(entity, entry, f"legal entity {entry.name}", wanted)
        entities[entry.name] = entity
    prefixes: dict[str, str] = {}
    for slug, entity in entities.items():
        other = prefixes.setdefault(entity.invoice_prefix, slug)
        if other != slug:
            line = next((entry.line_of("invoice_prefix") for entry in entries if entry.name in (slug, other)), 1)
            plan.problems.add(line, f"legal entity {slug}: {entity.invoice_prefix} is the prefix of {other} already")
    return entities


def plan_billing(plan: Plan, tenants: list[Entry], entities: Mapping[str, LegalEntity]) -> None:
    """A tenant's `legal_entity` and `billing`: either makes its account. After the tenants, which accounts refer to."""
    accounts = BillingAccount.objects.in_bulk([entry.name for entry in tenants])
    for entry in tenants:
        billing = entry.children.get("billing", [])
        if not billing and "legal_entity" not in entry.given:
            continue
        account = accounts.get(entry.name) or BillingAccount(tenant_id=entry.name)
        wanted: dict[str, Any] = {}
        if "legal_entity" in entry.given:
            slug = entry.get("legal_entity")
            if slug is not None and slug not in entities:
                known = f'there is no legal entity "{slug}"{near(slug, entities)}'
                plan.problems.add(entry.line_of("legal_entity"), f"tenant {entry.name}: {known}")
                continue
            wanted["legal_entity_id"] = slug
        for child in billing:
            wanted |= {field: given.value for field, given in child.given.items()}
        plan.put(account, billing[0] if billing else entry, f"billing of tenant {entry.name}", wanted)


def legal_entity_document(entity: LegalEntity) -> dict[str, Any]:
    return {"slug": entity.slug} | _filled(entity, _ENTITY)


def billing_document(account: BillingAccount) -> dict[str, Any]:
    """The fields of a tenant's entry that say how it is invoiced."""
    said: dict[str, Any] = {"legal_entity": account.legal_entity_id} if account.legal_entity_id else {}
    billing = _filled(account, _ACCOUNT)
    return said | ({"billing": billing} if billing else {})


def _filled(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """What differs from the default."""
    found = {}
    for name in names:
        value = getattr(row, name)
        if value != type(row)._meta.get_field(name).get_default():
            found[name] = value.split("\n") if name in _LINES else value
    return found
