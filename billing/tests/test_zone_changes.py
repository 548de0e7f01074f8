"""Through any change of time zone, what was admitted in a period is what its hours, days, budgets and invoice have."""

from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from itertools import count

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.budgets.counters import Part, ledger_sums
from billing.invoicing.drafting import compute
from billing.invoicing.lines import use_of
from billing.invoicing.tests.making import (
    close,
    event_of,
    finalise,
    make_customer,
    make_price,
    make_seller,
    stated,
    use,
)
from billing.invoicing.tests.making import write as write_events
from billing.ledger import SUMS
from billing.ledger_check.tests.books import damage, found
from billing.models import Budget, Invoice, LateUsage, Price, RefusedHour, TenantZone, UsageDay, UsageHour, UsageRecord
from billing.periods import PERIODS, calendar_of, day_begin, read_zones
from billing.rejections import draining
from tenants.tests.cast import make_tenant, sql

pytestmark = pytest.mark.django_db

APRIL = date(2026, 4, 1)
FILL = import_module("billing.migrations.0017_usage_days").FILL
MEND = import_module("billing.migrations.0024_hours_at_a_change").MEND
# Whole hours, half hours, three quarters, half an hour of summer time, and a day and an hour apart.
ZONES = [
    "UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Australia/Eucla", "Pacific/Chatham",
    "America/St_Johns", "Pacific/Marquesas", "America/Havana", "Africa/Cairo", "Europe/Berlin", "America/New_York",
    "Pacific/Kiritimati", "Pacific/Apia", "Pacific/Pago_Pago", "Pacific/Niue",
]  # fmt: skip
numbers = count()


def change_zone(tenant: str, before: str, after: str, month: date = APRIL) -> datetime:
    """Another zone from `month` on, as the database notes it; when it counts."""
    since = day_begin(month, before)
    TenantZone.objects.create(tenant=tenant, month=month, since=since, time_zone=after)
    return since


def cost_of(rows: object) -> tuple[int, int, int]:
    sums = [(row.input_tokens, row.output_tokens, row.cost_nano) for row in rows]  # type: ignore[attr-defined]
    return tuple(sum(column) for column in zip(*sums, strict=True)) if sums else (0, 0, 0)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    zones=st.lists(st.sampled_from(ZONES), min_size=2, max_size=3),
    minutes=st.lists(st.integers(-3000, 3000), min_size=4, max_size=20),
    close=st.lists(st.integers(-130, 130), min_size=4, max_size=12),
)
def test_records_hours_days_budgets_and_invoices_have_the_same(
    zones: list[str], minutes: list[int], close: list[int]
) -> None:
    slug = f"t{next(numbers)}"
    tenant = make_tenant(slug, time_zone=zones[0], currency="EUR")
    price = Price.objects.filter(model="demo").first() or make_price()
    since = change_zone(slug, zones[0], zones[1])
    changes = [since]
    if len(zones) > 2:
        changes.append(change_zone(slug, zones[1], zones[2], date(2026, 5, 1)))
    moments = [at + timedelta(minutes=minute) for at in changes for minute in (*minutes, *close, 0)]
    moments += [at - timedelta(milliseconds=1) for at in changes]
    write_events(*(event_of(at, price, tenant=slug) for at in moments))

    calendar, rows = calendar_of(slug), list(UsageRecord.rows.of(slug))
    for month in (date(2026, 3, 1), APRIL, date(2026, 5, 1), date(2026, 6, 1)):
        period = calendar.period(month)
        expected = cost_of(row for row in rows if period.start <= row.admitted_at < period.end)
        assert cost_of(UsageHour.objects.of(slug).filter(hour__gte=period.start, hour__lt=period.end)) == expected
        assert cost_of(UsageDay.objects.of(slug).filter(day__gte=period.start, day__lt=period.end)) == expected
        assert sum(use_of(slug, period, "EUR").tokens.values()) == expected[0] + expected[1]
        assert sum(line.quantity or 0 for line in compute(tenant, calendar, period, "EUR").lines) == sum(expected[:2])
    zones_now = read_zones([slug])
    budgets = [
        Budget.objects.create(tenant=tenant, name=name, period=name, amount=10, model=f"m{name}") for name in PERIODS
    ]
    for budget in budgets:
        budget.model = ""
    parts = {Part(one, zones_now.window_at(slug, one.period, at)) for at in moments for one in budgets}
    for part, total in zip(parts, ledger_sums(list(parts)), strict=True):
        start, end = part.window
        within = [row for row in rows if start <= row.admitted_at < end]
        assert total == cost_of(within)[2]
        if part.budget.period == "day":
            assert cost_of(UsageDay.objects.of(slug).filter(day__gte=start, day__lt=end)) == cost_of(within)
            assert {calendar.day_start(calendar.date_at(row.admitted_at)) for row in within} == {start}
    hours = {row.hour for row in UsageHour.objects.of(slug)}
    assert hours == {calendar.hour_start(at) for at in moments}


def test_its_new_month_begins_with_an_hour_of_its_own() -> None:
    make_customer(seller=make_seller(), time_zone="UTC")
    price = make_price()
    change_zone("acme", "UTC", "Asia/Kolkata")
    for text in ("2026-03-31 23:59:59.999", "2026-04-01 00:00", "2026-04-01 00:29:59", "2026-04-01 00:30"):
        use(text, price)
    rows = UsageHour.objects.order_by("hour").values_list("hour", "requests")
    assert [(f"{hour.astimezone(UTC):%m-%d %H:%M}", requests) for hour, requests in rows] == [
        ("03-31 23:00", 1),
        ("04-01 00:00", 2),
        ("04-01 00:30", 1),
    ]


def test_refusals_of_the_first_hour_are_the_new_months_too() -> None:
    make_tenant("acme", time_zone="UTC")
    since = change_zone("acme", "UTC", "Asia/Kolkata")
    quarter = int(since.timestamp())
    fields = {f"acme web k no_price {quarter + 900 * number}".encode(): b"1" for number in (-1, 0, 1, 2)}
    draining._write({"batch": fields})
    rows = RefusedHour.objects.order_by("hour").values_list("hour", "requests")
    assert [(hour - since, requests) for hour, requests in rows] == [
        (timedelta(hours=-1), 1),
        (timedelta(), 2),
        (timedelta(minutes=30), 1),
    ]


def spoil(since: datetime, hour: datetime, tenant: str = "acme") -> None:
    """What the hours and days were before: the new month's first hour under one of the month before."""
    damage(f"UPDATE billing_usagehour SET hour = '{hour}' WHERE tenant = '{tenant}' AND hour = '{since}'")
    damage("DELETE FROM billing_usageday; DELETE FROM billing_targethour")
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute(FILL)
        cursor.execute("SET ROLE headrace_system")
        cursor.execute(
            "INSERT INTO billing_targethour (hour, target, model, currency, input_tokens, cached_input_tokens,"
            " output_tokens, cost) SELECT date_trunc('hour', hour, 'UTC'), target, model, currency, sum(input_tokens),"
            " sum(cached_input_tokens), sum(output_tokens), sum(cost) FROM billing_usagehour GROUP BY 1, 2, 3, 4"
        )


def mend() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute(MEND)
        cursor.execute("SET ROLE headrace_system")


@pytest.mark.parametrize("before", ["UTC", "Asia/Kathmandu"])
def test_what_was_summed_otherwise_is_mended(before: str) -> None:
    make_customer(seller=make_seller(), time_zone=before)
    make_customer("globex", time_zone="UTC")
    price = make_price()
    since = change_zone("acme", before, "Asia/Kolkata")
    for minutes in (-61, -1, 0, 10, 29, 45, 3000):
        use(since + timedelta(minutes=minutes), price)
        use(since + timedelta(minutes=minutes), price, tenant="globex")
    right = [list(model.objects.order_by(*key).values_list(*key, *SUMS)) for model, key in (
        (UsageHour, ("hour", "tenant")), (UsageDay, ("day", "tenant")),
    )]  # fmt: skip
    wrong = sql("SELECT date_trunc('hour', %s::timestamptz, 'Asia/Kolkata')", since)[0][0]
    assert wrong < since
    spoil(since, wrong)
    mend()
    mend()
    assert right == [list(model.objects.order_by(*key).values_list(*key, *SUMS)) for model, key in (
        (UsageHour, ("hour", "tenant")), (UsageDay, ("day", "tenant")),
    )]  # fmt: skip
    assert found("hours").total == found("days").total == found("target_hours").total == 0


def test_what_an_invoice_stated_wrongly_is_adjusted_on_the_next() -> None:
    """March stated a million tokens of April's, and April, invoiced at once, lacks them."""
    make_customer(seller=make_seller(), time_zone="UTC")
    price = make_price(cached="0.5", output="0.5", input="0.5")
    since = change_zone("acme", "UTC", "Asia/Kolkata")
    use(since - timedelta(hours=5), price, tokens=(7_000_000, 0, 0))
    use(since + timedelta(minutes=10), price, tokens=(1_000_000, 0, 0))
    use(since + timedelta(hours=9), price, tokens=(2_000_000, 0, 0))
    spoil(since, since - timedelta(minutes=30))
    for now in ("2026-04-01", "2026-05-01"):
        for draft in close(datetime.fromisoformat(now).replace(tzinfo=UTC)):
            finalise(draft)
    march, april = Invoice.objects.order_by("period_start")
    assert [sum(line.quantity or 0 for line in one.lines.all()) for one in (march, april)] == [8_000_000, 2_000_000]
    copies = [march.content_hash, april.content_hash]

    mend()
    assert LateUsage.objects.filter(invoice=None).count() == 1
    use("2026-05-10 12:00", price, tokens=(500_000, 0, 0))
    [draft] = close(datetime(2026, 6, 2, tzinfo=UTC))
    may = finalise(draft)
    assert [line[0:2] + line[6:] for line in stated(may)] == [
        ("usage", "2026-05", 500_000, 0.25),
        ("adjustment", "2026-03", -1_000_000, -0.5),
        ("adjustment", "2026-04", 1_000_000, 0.5),
    ]
    assert [one.content_hash for one in Invoice.objects.order_by("period_start")[:2]] == copies
    assert found("invoiced_usage").total == found("hours").total == 0
    use("2026-06-10 12:00", price)
    [draft] = close(datetime(2026, 7, 2, tzinfo=UTC))
    assert {line[0] for line in stated(draft)} == {"usage"}  # once
