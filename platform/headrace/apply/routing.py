"""Planning models, their routes and targets."""

from collections.abc import Mapping

from django.core.exceptions import ValidationError

from engines.models import Pool, Provider
from headrace.apply.entries import Entry
from headrace.apply.plan import Change, Difference, Plan
from headrace.apply.problems import near
from headrace.apply.sections import CONDITIONS
from routing.conditions import BadConditions, conditions
from routing.models import Model, Route, Target

DEFAULT_MAX_TOKENS = 1024


def plan_models(
    plan: Plan, entries: list[Entry], pools: Mapping[str, Pool], providers: Mapping[str, Provider]
) -> dict[str, Model]:
    """Plan `entries`; all models by name, as they will be. A model has a route from its first day, if an empty one."""
    models = {model.name: model for model in Model.objects.all()}
    routes = {route.model_id: route for route in Route.objects.prefetch_related("targets")}
    for entry in entries:
        model = models.setdefault(entry.name, Model(name=entry.name))
        wanted = {field: given.value for field, given in entry.given.items()}
        if model._state.adding:
            if "context_window" not in wanted:
                plan.problems.add(entry.line, f"model {entry.name} wants a context_window, in tokens")
                continue
            wanted.setdefault("default_max_tokens", max(1, min(DEFAULT_MAX_TOKENS, wanted["context_window"])))
        plan.put(model, entry, f"model {entry.name}", wanted)
        children = entry.children.get("route", [])
        if entry.name not in routes:
            children = children or [Entry(entry.kind.only["route"], entry.name, entry.line, 0)]
        for child in children:
            _plan_route(plan, routes.get(entry.name) or Route(model=model), child, pools, providers)
    return models


def _plan_route(
    plan: Plan, route: Route, entry: Entry, pools: Mapping[str, Pool], providers: Mapping[str, Provider]
) -> None:
    label = f"route of {entry.name}"
    before = [] if route._state.adding else list(route.targets.all())
    change = plan.put(route, entry, label, {field: given.value for field, given in entry.given.items()})
    if "targets" not in entry.children:
        return
    after = []
    for position, child in enumerate(entry.children["targets"]):
        if target := _target(plan, child, label, pools, providers):
            target.route, target.position = route, position
            after.append(target)
    shown = [_show(targets) for targets in (before, after)]
    if shown[0] == shown[1]:
        return
    if change is None:
        change = Change(False, label, [])
        plan.changes.append(change)
    change.differences.append(Difference("targets", *shown))
    for old, new in zip(before, after, strict=False):  # a target that stays at its place keeps its row
        new.pk, new._state.adding = old.pk, False
    change.deletes += before[len(after) :]
    columns = ["position", "pool", "provider", "upstream_model", "context_window"]
    columns += ["conditions", "weight", "canary", "shadow"]
    change.saves += [(target, columns if target.pk else None) for target in after]


def _target(
    plan: Plan, entry: Entry, label: str, pools: Mapping[str, Pool], providers: Mapping[str, Provider]
) -> Target | None:
    named = [kind for kind in ("pool", "provider") if kind in entry.given]
    if len(named) != 1:
        plan.problems.add(entry.line, f"{label}: a target names either a pool or a provider")
        return None
    (kind,) = named
    known: Mapping[str, Pool | Provider] = pools if kind == "pool" else providers
    name, line = entry.get(kind), entry.line_of(kind)
    if name not in known:
        plan.problems.add(line, f'{label}: there is no {kind} "{name}"{near(name, known)}')
        return None
    upstream = entry.get("model", "")
    if kind == "provider" and not upstream:
        plan.problems.add(line, f"{label}: a provider's target wants the provider's model")
    if len(upstream) > 200:
        plan.problems.add(entry.line_of("model"), f"{label}: model is longer than 200 characters")
    wanted = {name: entry.get(name) for name in CONDITIONS if name in entry.given}
    try:
        wanted = conditions(wanted).as_dict()
    except BadConditions as error:
        plan.problems.add(entry.line, f"{label}: conditions: {error}")
        wanted = {}
    terms = {name: entry.get(name) for name in ("weight", "canary", "shadow")}
    window = entry.get("context_window", None)
    target = Target(upstream_model=upstream, context_window=window, conditions=wanted, **{kind: known[name]}, **terms)
    _check_terms(plan, target, entry, label)
    return target


def _check_terms(plan: Plan, target: Target, entry: Entry, label: str) -> None:
    for name in ("weight", "canary", "shadow"):
        try:
            target.clean_fields({field.name for field in Target._meta.concrete_fields} - {name})
        except ValidationError as error:
            plan.problems.add(entry.line_of(name), f"{label}: {name}: {error.messages[0]}")
    if sum(getattr(target, name) is not None for name in ("weight", "canary", "shadow")) > 1:
        plan.problems.add(entry.line, f"{label}: a target has a weight, or is a canary, or a shadow")


def _show(targets: list[Target]) -> str:
    return ", ".join(map(_shown, targets)) or "none"


def _shown(target: Target) -> str:
    terms = [f"{name} {value:g}" for name in ("weight", "canary", "shadow") if (value := getattr(target, name))]
    words = [f"{target.context_window} tokens" if target.context_window else "", str(target.wants), *terms]
    said = "; ".join(word for word in words if word)
    model = f":{target.upstream_model}" if target.upstream_model else ""
    return target.slug + model + (f" ({said})" if said else "")
