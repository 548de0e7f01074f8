"""Figures that are read from days are those that their hours have, whatever the zone, the clocks and the span do."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from billing.drain import drain_all
from billing.late_pricing import price_unpriced
from billing.ledger_check.tests.books import priced_event, set_price
from billing.models import TenantZone, UsageHour
from billing.partitions import ensure_months
from billing.periods import always_in, calendar_of, day_begin
from billing.tests.stream import append, connect, usage_event
from headrace.portal import figures
from headrace.portal.cells import Rolled
from headrace.portal.figures import Figures
from headrace.portal.period import period
from headrace.portal.rollups import DIMENSIONS, SUMS, rollups
from headrace.portal.rows import rows_of
from headrace.portal.views.charting import chart
from tenants.models import Tenant

# What clocks do there: nothing; nothing, half an hour past UTC's; half an hour at two; an hour at midnight, which comes
# twice in November; an hour over midnight, which in April never comes. The zones of others changed in April, and back.
ZONES = {
    "utc": "UTC",
    "kolkata": "Asia/Kolkata",
    "howe": "Australia/Lord_Howe",
    "havana": "America/Havana",
    "cairo": "Africa/Cairo",
    "east": "Asia/Kolkata",
    "west": "America/New_York",
    "back": "UTC",
}
BEFORE = {"east": ["UTC"], "west": ["Pacific/Kiritimati"], "back": ["UTC", "America/New_York"]}  # by month, to April
APRIL, MAY = date(2026, 4, 1), date(2026, 5, 1)
BUSY = [date(2026, 3, 8), APRIL, date(2026, 4, 4), date(2026, 4, 24), date(2026, 10, 3), date(2026, 11, 1)]
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


@pytest.fixture(scope="module")
def tenants(committed: None) -> dict[str, Tenant]:
    """Each with usage of every kind on the days that are BUSY, and within two days of them."""
    draw, found = Random(7), {}
    for at in BUSY:
        ensure_months(_noon(at))
    for slug, zone in ZONES.items():
        zones = [*BEFORE.get(slug, ()), zone]
        found[slug] = tenant = Tenant.objects.create(slug=slug, name=slug, time_zone=zones[0])
        for month, (before, after) in zip((APRIL, MAY), pairwise(zones), strict=False):
            since = day_begin(month, before)
            TenantZone.objects.create(tenant=slug, month=month, since=since, time_zone=after)
        tenant.time_zone = zone
    price, events = set_price(), []
    for slug in found:
        near = [_noon(day) + timedelta(minutes=draw.randrange(-3000, 3000)) for day in BUSY * 14]
        for at in (*near, *(_noon(APRIL) + timedelta(hours=hours) for hours in range(-36, 36))):
            names = {"tenant": slug, "currency": found[slug].currency, "key": draw.choice("kl")}
            unpriced = usage_event(at, cost=None, cost_nano=None, price=None, model="later", **names)
            event = priced_event(price, at, status=draw.choice(("ok", "error", "cancelled")), **names)
            copy = usage_event(at, kind="shadow", cost="0", cost_nano=0, price=None, **names)
            events += [event, draw.choice((event | {"part": 1}, unpriced, unpriced | {"model": "never"}, copy))]
    with connect() as client:
        append(client, *events)
        drain_all(client)
        set_price("later")
        price_unpriced(client)
        drain_all(client)
    return found


def _noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


def by_hours(tenant: Tenant, start: datetime, end: datetime, by: Callable[[UsageHour], Any]) -> dict[Any, Figures]:
    """The sums of the span's hours, added one by one."""
    sums: dict[Any, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for hour in UsageHour.objects.of(tenant).filter(hour__gte=start, hour__lt=end).exclude(kind="shadow"):
        for name in SUMS:
            if not (name in _TOKENS and hour.kind == "pricing"):
                sums[by(hour)][name] += getattr(hour, name)
            else:
                sums[by(hour)][name] += 0
    return {name: Figures(name, **each) for name, each in sums.items()}


def spans(tenant: Tenant, draw: Random) -> list[tuple[datetime, datetime]]:
    """From anywhere to anywhere, to the minute and between midnights; and what pages ask for."""
    found = []
    for day in BUSY:
        midnights = [day_begin(day + timedelta(days=draw.randrange(-3, 4)), tenant.time_zone) for _ in range(4)]
        ragged = [_noon(day) + timedelta(minutes=draw.randrange(-5000, 5000)) for _ in range(4)]
        found += [(min(pair), max(pair)) for pair in zip(midnights, midnights[1:] + ragged[:1], strict=True)]
        found += [(min(pair), max(pair)) for pair in zip(ragged, ragged[1:] + midnights[:1], strict=True)]
        asked = [period(name, calendar_of(tenant.pk), _noon(day)) for name in ("7d", "30d", "month", "last-month")]
        found += [(each.start, each.end) for each in asked] + [(each.before, each.before_end) for each in asked]
    return found


@pytest.mark.parametrize("slug", ZONES)
def test_it_reads_the_same_from_days_as_from_hours(tenants: dict[str, Tenant], slug: str) -> None:
    tenant, calendar, days = tenants[slug], calendar_of(slug), 0
    for start, end in spans(tenant, Random(slug)):
        with rows_of(slug, who="test", origin=""):
            rows = rollups(tenant, start, end)
            days += "billing_usageday" in rows.table
            [total] = by_hours(tenant, start, end, lambda hour: "").values() or [Figures("")]
            assert figures.total(rows) == total
            course, groups = figures.course_and_groups(rows, *DIMENSIONS)
            by_day = by_hours(tenant, start, end, lambda hour: calendar.date_at(hour.hour))
            assert {calendar.date_at(line.name): line for line in course}.keys() == by_day.keys()
            for line in course:
                assert _nameless(line) == _nameless(by_day[calendar.date_at(line.name)])
            assert course == figures.course(rows)
            for name, lines in zip(DIMENSIONS, groups, strict=True):
                by_name = by_hours(tenant, start, end, lambda hour, name=name: getattr(hour, name))  # type: ignore[misc]
                assert {line.name: line for line in lines} == by_name
                assert figures.grouped(rows, name) == lines
                assert figures.values(rows)[name] == sorted(by_name)
            drawn = Rolled(rows, "key").tokens(["k"])
            assert sum(count for _, _, count in drawn) == total.tokens
            by_key = {name: sum(n for _, key, n in drawn if key == name) for name in ("k", None)}
            assert by_key["k"] == sum(line.tokens for line in groups[1] if line.name == "k")
            narrowed = figures.total(rollups(tenant, start, end, model="later", target="", key="k"))
            chosen = by_hours(tenant, start, end, lambda hour: (hour.model, hour.key))
            assert _nameless(narrowed) == _nameless(chosen.get(("later", "k"), Figures("")))
    assert days > 40  # of 96 spans


def _nameless(line: Figures) -> list[Any]:
    return [getattr(line, name) for name in SUMS]


def test_it_reads_days_wherever_there_are_whole_ones(tenants: dict[str, Tenant]) -> None:
    with rows_of("kolkata", who="test", origin=""):
        tenant, noon = tenants["kolkata"], _noon(APRIL)
        midnight = day_begin(APRIL, tenant.time_zone)
        assert rollups(tenant, midnight, midnight + timedelta(days=3)).table.count("SELECT") == 1
        assert rollups(tenant, midnight, noon + timedelta(days=3)).table.count("SELECT") == 2
        assert rollups(tenant, noon, noon + timedelta(days=3)).table.count("billing_usagehour") == 2
        assert "usageday" not in rollups(tenant, midnight + timedelta(hours=1), midnight + timedelta(days=1)).table
        assert "usageday" not in rollups(tenant, midnight, midnight + timedelta(days=1), by_hour=True).table
        assert figures.total(rollups(tenant, noon, noon)) == Figures("")


def test_it_draws_both_hours_of_a_name(tenants: dict[str, Tenant]) -> None:
    span = period("yesterday", always_in("America/Havana"), datetime(2026, 11, 2, 12, tzinfo=UTC))
    hours = [datetime(2026, 11, 1, hour, tzinfo=UTC) for hour in (4, 5, 6)]  # midnight, midnight again, one
    drawn = chart(span, hours, [("Output", [1, 2, 3])], unit="tokens")
    assert drawn["series"][0]["values"][:4] == [1, 2, 3, 0]  # type: ignore[index]
