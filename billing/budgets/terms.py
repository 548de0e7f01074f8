"""Add, change and remove budgets. Every process obeys within a second (the configuration feed)."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict, Unpack

from billing.models import Budget
from billing.models.budget import Period
from headrace_core.writes import InvalidWrite, check_names, check_row, transactional
from tenants.models import ApiKey, Project


class BudgetTerms(TypedDict, total=False):
    """What may change of a budget; what is left out is the model's default, or stays. Money: the tenant's currency."""

    amount: Decimal
    hard: bool
    enabled: bool
    set_by: str
    thresholds: Sequence[int]
    extra: Decimal | None
    extra_until: datetime | None


TERMS = frozenset(BudgetTerms.__annotations__)


def draft_budget(
    *,
    tenant: str,
    name: str,
    period: str = Period.MONTH,
    project: str = "",
    key: str = "",
    model: str = "",
    **terms: Unpack[BudgetTerms],
) -> Budget:
    """Build the row that `add_budget` saves, unsaved: for plans."""
    scope = {"project": project, "key": key, "model": model}
    return Budget(tenant_id=tenant, name=name, period=period, **scope, **_stored(terms))


@transactional(Budget)
def add_budget(
    *,
    tenant: str,
    name: str,
    period: str = Period.MONTH,
    project: str = "",
    key: str = "",
    model: str = "",
    **terms: Unpack[BudgetTerms],
) -> Budget:
    """Add a budget of the requests with that project (slug), key (public id) and model (name); empty: of all.

    It counts from the beginning of the present period. Whose requests it counts, and in which period, never changes.
    Raises InvalidWrite. The database refuses a name that the tenant's budgets have already, and one budget too many.
    """
    check_scope(tenant=tenant, project=project, key=key)
    budget = draft_budget(tenant=tenant, name=name, period=period, project=project, key=key, model=model, **terms)
    check_row(budget)
    budget.save(force_insert=True)
    return budget


@transactional(Budget)
def change_budget(*, budget: Budget, **terms: Unpack[BudgetTerms]) -> None:
    """Change what the budget allows, and no other column. Raises InvalidWrite."""
    changes = _stored(terms)
    for name, value in changes.items():
        setattr(budget, name, value)
    check_row(budget, changes)
    budget.save(update_fields=list(changes))


@transactional(Budget)
def remove_budget(*, budget: Budget) -> None:
    """Remove the budget with its adjustments and alerts. What it counted stays in the ledger."""
    budget.delete()


def check_scope(*, tenant: str, project: str, key: str) -> None:
    """Raise InvalidWrite for a project or a key that is not the tenant's. Models may go and stay on record."""
    errors = {}
    if project and not Project.objects.of(tenant).filter(slug=project).exists():
        errors["project"] = ["The tenant has no such project."]
    if key and not ApiKey.objects.of(tenant).filter(pk=key).exists():
        errors["key"] = ["The tenant has no such key."]
    if errors:
        raise InvalidWrite(errors)


def _stored(terms: BudgetTerms) -> dict[str, Any]:
    """Thresholds are kept in their order, each once."""
    check_names(terms, TERMS)
    stored: dict[str, Any] = {**terms}
    if "thresholds" in stored:
        stored["thresholds"] = sorted(set(stored["thresholds"]))
    return stored
