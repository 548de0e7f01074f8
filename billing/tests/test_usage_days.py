"""Days of usage are the sums of their hours, by the local day of the zone that the tenant's period has."""

from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.db import connection

from billing import rebuilding
from billing.drain import drain_all
from billing.late_pricing import price_unpriced
from billing.ledger import DAY_BUCKET, SUMS
from billing.ledger_check.tests.books import damage, found, set_price
from billing.models import TenantZone, UsageDay
from billing.partitions import ensure_months, month_of
from billing.tests.stream import append, connect, usage_event
from tenants.models import Tenant

pytestmark = pytest.mark.django_db

FILL = import_module("billing.migrations.0017_usage_days").FILL
MEND = import_module("billing.migrations.0024_hours_at_a_change").MEND


def drained(*events: object) -> None:
    with connect() as client:
        append(client, *events)  # type: ignore[arg-type]
        drain_all(client)


def at(text: str) -> datetime:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT headrace_usage_partition(%s)", [month_of(moment)])
    return moment


def days(time_zone: str, *moments: str) -> list[tuple[str, int]]:
    """The days (UTC start, requests) of requests admitted at `moments` (UTC) by a tenant of `time_zone`."""
    Tenant.objects.create(slug="acme", name="Acme", time_zone=time_zone)
    drained(*(usage_event(at(moment)) for moment in moments))
    return known()


def known() -> list[tuple[str, int]]:
    rows = UsageDay.objects.order_by("day").values_list("day", "requests")
    return [(f"{day.astimezone(UTC):%Y-%m-%d %H:%M}", requests) for day, requests in rows]


def test_it_begins_at_the_tenants_own_midnight() -> None:
    assert days("Asia/Kolkata", "2026-03-10 18:29:59.999", "2026-03-10 18:30", "2026-03-11 18:29") == [
        ("2026-03-09 18:30", 1),
        ("2026-03-10 18:30", 2),
    ]


def test_it_is_an_hour_shorter_or_longer_where_clocks_change() -> None:
    assert days(
        "Europe/Berlin",
        *("2026-03-28 23:00", "2026-03-29 21:59", "2026-03-29 22:00"),
        *("2026-10-24 22:00", "2026-10-25 22:59", "2026-10-25 23:00"),
    ) == [
        ("2026-03-28 23:00", 2),
        ("2026-03-29 22:00", 1),
        ("2026-10-24 22:00", 2),
        ("2026-10-25 23:00", 1),
    ]


def test_the_first_day_of_a_month_in_another_zone_begins_with_the_month() -> None:
    Tenant.objects.create(slug="acme", name="Acme", time_zone="UTC")
    TenantZone.objects.create(tenant="acme", month="2026-04-01", since=at("2026-04-01"), time_zone="America/New_York")
    moments = ("2026-03-31 12:00", "2026-03-31 23:59", "2026-04-01 00:00", "2026-04-01 03:59", "2026-04-01 04:00")
    drained(*(usage_event(at(moment)) for moment in moments))
    assert known() == [("2026-03-31 00:00", 2), ("2026-04-01 00:00", 3)]
    assert found("days").differences == []


def test_it_holds_what_hours_hold_and_comes_to_the_same_when_summed_anew_or_by_the_migration() -> None:
    zones = {"utc": "UTC", "kolkata": "Asia/Kolkata", "howe": "Australia/Lord_Howe", "havana": "America/Havana"}
    ensure_months(at("2026-04-10"))
    for slug, zone in zones.items():
        Tenant.objects.create(slug=slug, name=slug, time_zone=zone)
    TenantZone.objects.create(tenant="utc", month="2026-04-01", since=at("2026-04-01"), time_zone="Asia/Kolkata")
    unpriced = {"cost": None, "cost_nano": None, "price": None}
    for slug in zones:
        for moment in (
            "2026-03-31 10:00",
            "2026-03-31 18:45",
            "2026-04-01 00:10",
            "2026-04-04 14:45",
            "2026-04-04 15:15",
        ):
            event = usage_event(at(moment), tenant=slug)
            late = usage_event(at(moment), tenant=slug, **unpriced)
            failed = usage_event(at(moment), tenant=slug, status="error", usage_source="estimated")
            drained(event, event | {"part": 1}, late, failed)
    set_price()
    with connect() as client:
        price_unpriced(client)
        drain_all(client)
    drained(event)  # once more, of which nothing is new
    outcome = found("days")
    assert (outcome.differences, outcome.compared) == ([], UsageDay.objects.count())
    kept = list(UsageDay.objects.order_by(*DAY_BUCKET).values_list(*DAY_BUCKET, *SUMS))
    assert rebuilding.days() == len(kept) > len(zones)
    assert list(UsageDay.objects.order_by(*DAY_BUCKET).values_list(*DAY_BUCKET, *SUMS)) == kept
    damage("DELETE FROM billing_usageday")
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute(FILL)
        cursor.execute(MEND)
        cursor.execute("SET ROLE headrace_system")
    assert list(UsageDay.objects.order_by(*DAY_BUCKET).values_list(*DAY_BUCKET, *SUMS)) == kept
