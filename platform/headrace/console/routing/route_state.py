"""A route in an operator's words: what is compared before a change of it is saved."""

from django.db.models import FloatField

from routing.models import Route, Target

TITLES = {"ttft_target": "Time to first token", "tpot_target": "Time per further token"}


def route_state(route: Route) -> dict[str, str]:
    targets = Target.objects.filter(route=route).order_by("position", "pk")
    state = {f"Target {number}": _target(target) for number, target in enumerate(targets, 1)}
    for field in Route._meta.concrete_fields:
        if field.name != "model":
            title = TITLES.get(field.name, str(field.verbose_name).capitalize())
            state[title] = _value(route, field.name, isinstance(field, FloatField))
    return state


def _target(target: Target) -> str:
    traits = [
        target.slug,
        target.upstream_model and f"as {target.upstream_model}",
        target.context_window and f"up to {target.context_window:,} tokens",
        target.conditions and f"only with {target.wants}",
        target.weight and f"weight {target.weight:,}",
        target.canary is not None and f"canary of {target.canary:g} %",
        target.shadow is not None and f"shadow of {target.shadow:g} %",
    ]
    return ", ".join(str(trait) for trait in traits if trait)


def _value(route: Route, name: str, is_seconds: bool) -> str:
    value = getattr(route, name)
    if value is None:
        return "none"
    if is_seconds:
        return f"{value:g} s"
    display = getattr(route, f"get_{name}_display", None)
    return str(display()) if display else f"{value:,}"
