"""Planning limits per model: `limits: {models: {NAME: {...}}}` at a tenant, a project or a key."""

from collections.abc import Collection, Iterable
from typing import Any

from yaml.nodes import Node

from headrace.apply import reader
from headrace.apply.entries import Entry
from headrace.apply.plan import Plan
from headrace.apply.problems import Problems, near
from tenants.limits import add_model_limits, draft_model_limits, set_limits
from tenants.models import LIMIT_FIELDS, ModelLimits

Document = dict[str, Any]
FIELD = "model_limits"


def read(node: Node) -> dict[str, dict[str, int | None]]:
    """{model: {limit: value}}. Raises reader.Invalid."""
    problems = Problems()
    found: dict[str, dict[str, int | None]] = {}
    for model, (_, limits) in reader.mapping(node, problems).items():
        found[model] = {}
        for name, (_, value) in reader.mapping(limits, problems).items():
            if name not in LIMIT_FIELDS:
                raise reader.Invalid(f'of {model} knows no "{name}"{near(name, LIMIT_FIELDS)}')
            found[model][name] = reader.optional(reader.whole)(value)
    if problems.found:
        raise reader.Invalid(problems.found[0].text)
    return found


class ModelLimitsOf:
    """The limits per model of some tenants, as they are and as they will be."""

    def __init__(self, tenants: Collection[str], models: Collection[str]) -> None:
        rows = ModelLimits.objects.filter(tenant__in=tenants)
        self._known = {(row.tenant_id, row.project, row.key, row.model): row for row in rows}
        self._models = models

    def plan(self, plan: Plan, tenant: str, entry: Entry, *, project: str = "", key: str = "") -> None:
        """Plan those written at `entry`; a model that is not named keeps what it has."""
        for model, limits in (entry.get(FIELD) or {}).items():
            label = f"limits of {entry.label} for {model}"
            row = self._known.get((tenant, project, key, model))
            if row is None and model not in self._models:
                hint = near(model, self._models)
                plan.problems.add(entry.line_of(FIELD), f'{entry.label}: there is no model "{model}"{hint}')
                continue
            scope = {"tenant": tenant, "project": project, "key": key, "model": model}
            change = plan.put(row or draft_model_limits(**scope), entry, label, limits)
            if change is None:
                continue
            if row is None:
                change.call(add_model_limits, **scope, **limits)
            else:
                change.call(set_limits, holder=row, **{name: limits[name] for name in change.fields})


def written(rows: Iterable[ModelLimits], *, project: str = "", key: str = "") -> Document:
    """`{"models": ...}` of those written at a project, or a key, or (neither) the tenant; or nothing."""
    found = {row.model: row.limits for row in rows if (row.project, row.key) == (project, key) and row.limits}
    return {"models": found} if found else {}
