"""Planning exchange rates. A rate of another day is another rate; what was written stays."""

from billing.models import ExchangeRate
from headrace.apply.entries import Entry
from headrace.apply.plan import Plan

_WANTED = ("base", "quote", "rate", "from")


def plan_exchange_rates(plan: Plan, entries: list[Entry]) -> None:
    known = {(row.base, row.quote, row.day): row for row in ExchangeRate.objects.all()}
    seen = set()
    for entry in entries:
        if missing := [name for name in _WANTED if name not in entry.given]:
            if not any(problem.line == entry.line for problem in plan.problems.found):  # else it could not be read
                plan.problems.add(entry.line, f"an exchange rate wants {' and '.join(missing)}")
            continue
        key = (entry.get("base"), entry.get("quote"), entry.get("from"))
        label = f"exchange rate {key[0]}/{key[1]} from {key[2]}"
        if key in seen:
            plan.problems.add(entry.line, f"{label} stands here twice")
            continue
        seen.add(key)
        row = known.get(key) or ExchangeRate()
        base, quote, day = key
        plan.put(row, entry, label, {"base": base, "quote": quote, "rate": entry.get("rate"), "day": day})
