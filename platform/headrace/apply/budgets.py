"""Planning budgets: those written at a tenant, at a project, at a key."""

from collections.abc import Collection, Iterable
from typing import Any

from billing.budgets.terms import TERMS, add_budget, change_budget, draft_budget
from billing.models import Budget, SetBy
from headrace.apply.entries import Entry
from headrace.apply.plan import Plan
from headrace.apply.problems import near

Document = dict[str, Any]
_FIXED = ("project", "key", "model", "period")


class Budgets:
    """The budgets of some tenants, as they are and as they will be. Names are a tenant's own, wherever written."""

    def __init__(self, tenants: Collection[str], models: Collection[str]) -> None:
        self._known = {(row.tenant_id, row.name): row for row in Budget.objects.filter(tenant__in=tenants)}
        self._models = models
        self._lines: dict[tuple[str, str], int] = {}

    def plan(self, plan: Plan, tenant: str, entry: Entry, *, project: str = "", key: str = "") -> None:
        """Plan the budgets written at `entry`, which count the use of that project, or key (public id), or all."""
        for child in entry.children.get("budgets", []):
            label = f"budget {tenant}/{child.name}"
            if first := self._lines.get((tenant, child.name)):
                plan.problems.add(child.line, f"{label} stands here twice (first in line {first})")
                continue
            self._lines[tenant, child.name] = child.line
            self._plan(plan, child, label, tenant, {"project": project, "key": key})

    def _plan(self, plan: Plan, entry: Entry, label: str, tenant: str, scope: dict[str, str]) -> None:
        wanted: dict[str, Any] = {"set_by": SetBy.OPERATOR} | {name: given.value for name, given in entry.given.items()}
        model = wanted.get("model")
        budget = self._known.get((tenant, entry.name))
        if model and model not in self._models and not (budget and budget.model == model):
            hint = near(model, self._models)
            plan.problems.add(entry.line_of("model"), f'{label}: there is no model "{model}"{hint}')
            return
        is_new = budget is None
        if budget is None:
            if "amount" not in entry.given:
                if not any(problem.line == entry.line for problem in plan.problems.found):  # else it could not be read
                    plan.problems.add(entry.line, f"{label} wants an amount")
                return
            budget = draft_budget(tenant=tenant, name=entry.name, project=scope["project"], key=scope["key"])
        else:
            for name in _FIXED:
                if (wanted | scope).get(name, getattr(budget, name)) != getattr(budget, name):
                    text = f"{label}: its {name} never changes; give another budget another name"
                    plan.problems.add(entry.line_of(name), text)
                    return
        if (change := plan.put(budget, entry, label, wanted)) is None:
            return
        if is_new:
            change.call(add_budget, tenant=tenant, name=entry.name, **scope, **wanted)
        else:
            change.call(change_budget, budget=budget, **{name: wanted[name] for name in change.fields & TERMS})


def written(budgets: Iterable[Budget], *, project: str = "", key: str = "") -> Document:
    """`{"budgets": [...]}` of those that are written at a project, or a key, or (neither) the tenant; or nothing."""
    found = [_entry(budget) for budget in budgets if (budget.project, budget.key) == (project, key)]
    return {"budgets": found} if found else {}


def _entry(budget: Budget) -> Document:
    entry: Document = {"name": budget.name, "amount": budget.amount, "period": budget.period}
    if budget.model:
        entry["model"] = budget.model
    if budget.set_by != SetBy.OPERATOR:
        entry["set_by"] = budget.set_by
    entry |= {"hard": budget.hard, "thresholds": budget.thresholds}
    if budget.extra is not None and budget.extra_until is not None:
        entry["increase"] = {"amount": budget.extra, "until": budget.extra_until.isoformat()}
    return entry if budget.enabled else entry | {"enabled": False}
