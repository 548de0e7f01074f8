"""Streams across the end of a month, a change of clocks and a new price: the time of admission decides, everywhere.

The web process runs on a clock of its own, which is a moment before the boundary when the stream is admitted and beyond
it when the stream ends. What the worker does is done at those times too.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
import redis
from django.db import connection

from billing.budgets import counters as budgets
from billing.budgets.counters import Part
from billing.invoicing.closing import close_tenant
from billing.invoicing.tests.making import stated
from billing.ledger_check.registry import CHECKS
from billing.models import Budget, Price, UsageHour, UsageRecord
from billing.partitions import month_of
from billing.periods import PERIODS
from headrace.gateway.tests.calling import Answer, Place
from headrace.gateway.tests.conftest import UNBROKEN
from headrace_dev.testing.clock import Clock
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import at_rest, drained
from tenants.meters import counters, holds
from tenants.models import Project, Tenant

MOMENT = timedelta(seconds=30)
HOUR = timedelta(hours=1)
# By an hour in the night, by half an hour, and by an hour at midnight.
CHANGING = ("Europe/Berlin", "Australia/Lord_Howe", "America/Santiago")


class Boundary(NamedTuple):
    """Where a stream is under way. ends: the periods of budgets that end there, weeks aside."""

    name: str
    zone: str
    at: datetime
    ends: set[str]


def month_end(zone: str) -> datetime:
    """That of the coming month, by the clocks there."""
    here = datetime.now(ZoneInfo(zone)) + timedelta(days=31)
    return datetime(here.year + here.month // 12, here.month % 12 + 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def changes(zone: str) -> list[datetime]:
    """The next two changes of the clocks there, from tomorrow on."""
    at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=1)
    steps = (at + timedelta(minutes=30 * number) for number in range(1, 2 * 24 * 400))
    local = ZoneInfo(zone)
    shifts = [one for one in steps if offset(one, local) != offset(one - timedelta(minutes=30), local)]
    return shifts[:2]


def offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


def boundaries() -> Iterator[Boundary]:
    for zone in ("UTC", "Asia/Kolkata", "Pacific/Auckland", "America/St_Johns"):
        yield Boundary(f"month in {zone}", zone, month_end(zone), {"day", "month"})
    for zone in CHANGING:
        for at in changes(zone):
            before, after = (offset(at + step, ZoneInfo(zone)) or timedelta() for step in (-MOMENT, MOMENT))
            way = "forward" if after > before else "back"
            # A midnight that is leapt over ends the day; one that is put off does not.
            yield Boundary(
                f"{way} in {zone}", zone, at, {"day"} if (zone, way) == ("America/Santiago", "forward") else set()
            )


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def place(
    committed: None, clock: Clock, engine: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    web = WebProcess(tmp_path_factory.mktemp("web") / "web.log", **clock.environment, **UNBROKEN)
    try:
        yield Place(web.wait_ready(), engine)
    finally:
        web.stop()


class Customer:
    """A tenant of its own, with a budget for each period, whose model has a price until the boundary and one after."""

    def __init__(self, place: Place, boundary: Boundary) -> None:
        self._place = place
        self.model = place.add_model()
        self.slug = f"of-{self.model}"
        tenant = Tenant.objects.create(
            slug=self.slug, name="Customer", time_zone=boundary.zone, created_at=boundary.at - timedelta(days=1)
        )
        self.old, self.new = (
            Price.objects.create(model=self.model, input=rate, cached_input=rate, output=rate, effective_from=since)
            for rate, since in ((Decimal(1), datetime.now(UTC)), (Decimal(3), boundary.at))
        )
        self.budgets = [
            Budget.objects.create(tenant=tenant, name=period, amount=1000, period=period) for period in PERIODS
        ]
        with connection.cursor() as cursor:
            for at in (boundary.at - MOMENT, boundary.at + MOMENT):
                cursor.execute("SELECT headrace_usage_partition(%s)", [month_of(at)])
        # The last, so that who knows it knows the rest.
        _, self._secret = place.world.add_key(Project.objects.create(tenant=tenant, slug="app", name="App"))
        place.wait_known(self.model, secret=self._secret)

    def ask(self, content: str = "Hello") -> Answer:
        return self._place.chat(content, secret=self._secret, model=self.model, max_tokens=50, stream=True)

    def parts(self, at: datetime) -> list[Part]:
        return budgets.current(self.budgets, at)

    def usage(self) -> list[UsageRecord]:
        return list(UsageRecord.objects.filter(tenant=self.slug).order_by("admitted_at"))

    def invoiced(self, now: datetime) -> list[tuple[datetime, Counter[str]]]:
        """Of each draft there is at `now`: the end of its period, and the tokens it states by price."""
        found = []
        for draft in close_tenant(self.slug, now=now):
            tokens: Counter[str] = Counter()
            for line in stated(draft):
                tokens[line[5]] += line[6]
            found.append((draft.period_end, tokens))
        return found


def all_tokens(record: UsageRecord) -> int:
    return record.input_tokens + record.output_tokens


def counted(valkey: "redis.Redis", parts: list[Part]) -> dict[str, tuple[int, int]]:
    """What is spent and held of each, by its key."""
    found = counters.read(valkey, [part.key for part in parts])
    return {part.key: (one.spent, one.held) for part, one in zip(parts, found, strict=True) if one is not None}


@pytest.mark.parametrize("boundary", list(boundaries()), ids=lambda boundary: boundary.name)
def test_the_time_of_admission_decides(place: Place, clock: Clock, valkey: "redis.Redis", boundary: Boundary) -> None:
    before, after = boundary.at - MOMENT, boundary.at + MOMENT
    clock.set(before)
    customer = Customer(place, boundary)
    old, new = customer.parts(before), customer.parts(after)
    crossed = {part.budget.period for part, other in zip(old, new, strict=True) if part.key != other.key}
    assert crossed - {"week"} == boundary.ends
    budgets.keep(valkey, now=clock.now())

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(customer.ask, prompt(first_ms=1200, tokens=5))
        eventually(lambda: list(holds.living(valkey)))
        clock.set(after)
        budgets.keep(valkey, now=clock.now())
        held = counted(valkey, old)
        assert all(spent == 0 and amount > 50 * 1000 for spent, amount in held.values())  # more than its output
        # Nothing of it is in a window that began meanwhile.
        assert counted(valkey, new) == {part.key: held.get(part.key, (0, 0)) for part in new}
        assert running.result().is_done
    at_rest(valkey)
    assert customer.ask().is_done
    at_rest(valkey)
    drained(valkey)

    first, second = customer.usage()
    assert first.admitted_at < boundary.at < first.finished_at
    assert (first.price, second.price) == (customer.old.version, customer.new.version)
    assert (first.cost_nano, second.cost_nano) == (all_tokens(first) * 1000, all_tokens(second) * 3000)

    spent: Counter[str] = Counter()
    for parts, record in ((old, first), (new, second)):
        for part in parts:
            spent[part.key] += record.cost_nano or 0
    both = list({part.key: part for part in (*old, *new)}.values())
    assert counted(valkey, both) == {key: (amount, 0) for key, amount in spent.items()}
    assert budgets.ledger_sums(both) == [spent[part.key] for part in both]

    hours = list(UsageHour.objects.filter(tenant=customer.slug).order_by("hour").values_list("hour", "price"))
    assert hours[0] == (boundary.at - HOUR, first.price)
    assert hours[1][1] == second.price

    tokens = [Counter({str(record.price): all_tokens(record)}) for record in (first, second)]
    drafts = customer.invoiced(boundary.at + timedelta(days=40))
    if "month" in boundary.ends:
        assert customer.invoiced(after) == [(boundary.at, tokens[0])]
        assert [draft for _, draft in drafts] == tokens
    else:
        assert [draft for _, draft in drafts] == [tokens[0] + tokens[1]]
    assert {name: check.run(valkey).differences for name, check in CHECKS.items()} == {name: [] for name in CHECKS}
