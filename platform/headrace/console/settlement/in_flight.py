"""What is under way: the stream, the requests that run, files on disk, counters that are being made."""

from datetime import UTC, datetime
from typing import Any

import redis
from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from billing.budgets.counters import current
from billing.drain import GROUP
from billing.models import Budget
from headrace.console.settlement import pending
from headrace.console.settlement.section import BAD, GOOD, SHOWN, TIGHT, Section, since
from headrace.quantities import age, count
from tenants.meters import counters
from tenants.meters.holds import USAGE

LATE_MS, TOO_LATE_MS = 10_000, 60_000  # of the oldest entry: usually it is gone in 2 s; the alert rule's minute


def stream(client: "redis.Redis", now_ms: int) -> Section:
    title, length = "Usage on its way to the ledger", int(client.xlen(USAGE))
    oldest: Any = client.xrange(USAGE, count=1)
    if not oldest:
        return Section(title, GOOD, "0 waiting", "Everything that ended is in the ledger.")
    lag = max(0, now_ms - int(oldest[0][0].partition(b"-")[0]))
    is_late = lag > LATE_MS
    return Section(
        title,
        BAD if lag > TOO_LATE_MS else TIGHT if is_late else GOOD,
        f"{count(length)} waiting",
        f"The oldest for {age(lag)}; {count(_pending(client))} read and not yet acknowledged.",
        "Nothing is lost while it waits in Redis. Is the worker running (below), and does PostgreSQL answer?"
        if is_late
        else "",
    )


def _pending(client: "redis.Redis") -> int:
    try:
        return int(client.xpending(USAGE, GROUP)["pending"])
    except redis.ResponseError:
        return 0  # nothing was ever drained: there is no group


def holds(client: "redis.Redis", now_ms: int) -> Section:
    found = pending.holds(client, now_ms)
    if not found.count:
        return Section("Holds", GOOD, "0 running", "No request runs.")
    oldest = "" if found.oldest_ms is None else f", the oldest for {age(now_ms - found.oldest_ms)}"
    detail = f"What requests that run now have taken of their limits and budgets{oldest}."
    if found.looked_into < found.count:
        detail += f" By tenant: the {count(found.looked_into)} whose leases end first."
    todo = ""
    if found.lapsed:
        detail += f" {count(found.lapsed)} outlived their lease."
        todo = (
            "Their process died or froze. The reaper settles them with the last progress they told, within seconds; if"
            " they stay, the worker does not run, or Redis has been up for less than a lease"
            f" ({settings.LEASE_SECONDS:g} s)."
        )
    return Section(
        "Holds",
        TIGHT if found.lapsed else GOOD,
        f"{count(found.count)} running",
        detail,
        todo,
        None,
        ("Tenant", "Holds", "Oldest"),
        frozenset({"Holds", "Oldest"}),
        [(tenant, count(number), age(now_ms - first)) for tenant, (number, first) in found.by_tenant.items()][:SHOWN],
    )


_ASIDE = (
    " Those in files ending in .aside could not be delivered while Redis was well, and the log says why; the reaper "
    "settles their requests. Rename a file to end in .jsonl to have it delivered again, else remove it."
)


def spools() -> Section:
    found, now = pending.spooled(settings.HOME / "spool"), timezone.now()
    if not found:
        nothing = "No web process of this machine keeps settlements that Redis could not take."
        return Section("Spool files", GOOD, "none", nothing)
    return Section(
        "Spool files",
        TIGHT,
        f"{count(sum(file.words for file in found))} waiting",
        f"Settlements that Redis could not take when their requests ended, in {count(len(found))}"
        f" {'file' if len(found) == 1 else 'files'} of this machine.",
        "They are delivered each second once Redis answers, by any web process of the same home. If they stay, no web "
        f"process runs with {settings.HOME}: start one there."
        + (_ASIDE if any(file.is_aside for file in found) else ""),
        None,
        ("File", "Settlements", "Oldest"),
        frozenset({"Settlements", "Oldest"}),
        [(file.name, count(file.words), since(file.oldest, now) if file.oldest else "unreadable")
         for file in found[:SHOWN]],
    )  # fmt: skip


def budgets(client: "redis.Redis") -> Section:
    title, link = "Budgets being counted anew", ("All budgets", reverse("admin:billing_budget_changelist"))
    enabled = list(Budget.objects.filter(enabled=True))
    if not enabled:
        return Section(title, GOOD, "none", "No budget is in force.", link=link)
    parts = current(enabled, datetime.now(UTC))
    made = counters.read(client, [part.key for part in parts])
    missing = [part.budget for part, counter in zip(parts, made, strict=True) if counter is None]
    is_trusted = counters.is_trusted(client, counters.run_id(client))
    if is_trusted and not missing:
        return Section(title, GOOD, f"0 of {count(len(enabled))}", "Every counter stands.", link=link)
    return Section(
        title,
        TIGHT,
        f"{count(len(missing))} of {count(len(enabled))}" if is_trusted else "all",
        "Redis may have lost their counters; requests under them get 503 budget_rebuilding until they are made.",
        "The worker makes them within seconds; after a loss it waits until running requests have put their holds back. "
        "If they stay, the worker does not run, or the drain is stuck.",
        link,
        ("Tenant", "Budget", "Period"),
        frozenset(),
        [(budget.tenant_id, budget.name, str(budget.period)) for budget in missing[:SHOWN]],
    )
