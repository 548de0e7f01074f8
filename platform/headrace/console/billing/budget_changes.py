"""What a budget that is saved comes to, in an operator's words."""

from django.utils import timezone

from billing import amounts
from billing.models import Budget
from headrace.console.saving import Asked, State, differences

PERIODS = {"day": "a day", "week": "a week", "month": "a month", "total": "in all"}


def budget_state(budget: Budget) -> State:
    currency = budget.tenant.currency
    state = {
        "Amount": f"{amounts.priced(budget.amount, currency)} {PERIODS[budget.period]}",
        "What would pass it": "is refused" if budget.hard else "is only told",
        "State": "on" if budget.enabled else "off",
        "Whose it is": f"the {budget.set_by}'s",
        "People are told at": ", ".join(f"{percent} %" for percent in budget.thresholds) or "nothing",
    }
    if budget.extra is not None:
        state["Temporary increase"] = (
            f"{amounts.priced(budget.extra, currency)} until {budget.extra_until:%Y-%m-%d %H:%M} UTC"
        )
    return state


def scope_of(budget: Budget) -> str:
    """Whose requests of its tenant it counts; empty: all."""
    return ", ".join(f"{kind} {name}" for kind in ("project", "key", "model") if (name := getattr(budget, kind)))


def asked_of(budget: Budget, before: State | None) -> Asked:
    scope = scope_of(budget)
    whose = f"requests of {budget.tenant}" + (f" with {scope}" if scope else "")
    if not budget.enabled:
        effect = f"Within a second nothing holds {whose} to it, and nobody is told."
    elif budget.hard:
        limit = amounts.priced(budget.limit_at(timezone.now()), budget.tenant.currency)
        effect = f"Within a second {whose} that might pass {limit} {PERIODS[budget.period]} are refused."
    else:
        effect = f"It refuses nothing: people are told how far {whose} are."
    return Asked(
        title=f"{'Set' if before is None else 'Change'} the budget {budget}?",
        effects=[effect, "What runs is not cut off."],
        changes=differences(before or {}, budget_state(budget)),
        button="Set the budget" if before is None else "Change the budget",
    )
