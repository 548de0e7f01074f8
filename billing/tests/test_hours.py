"""A rollup bucket is the tenant's local hour, stored as the instant at which it began."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from billing.drain import drain_all
from billing.models import UsageHour
from billing.partitions import month_of
from billing.tests.stream import append, connect, usage_event
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


def hours(time_zone: str, *moments: str) -> list[tuple[str, int]]:
    """The buckets (UTC start, requests) of requests admitted at `moments` (UTC) by a tenant of `time_zone`."""
    Tenant.objects.create(slug="acme", name="Acme", time_zone=time_zone)
    instants = [datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in moments]
    with connection.cursor() as cursor:
        for month in {month_of(instant) for instant in instants}:
            cursor.execute("SELECT headrace_usage_partition(%s)", [month])
    with connect() as client:
        append(client, *(usage_event(instant) for instant in instants))
        drain_all(client)
    rows = UsageHour.objects.order_by("hour").values_list("hour", "requests")
    return [(f"{hour.astimezone(UTC):%Y-%m-%d %H:%M}", requests) for hour, requests in rows]


def test_it_begins_on_the_half_hour_where_the_zone_does() -> None:
    assert hours("Asia/Kolkata", "2026-03-10 18:29:59.999", "2026-03-10 18:30:00.000", "2026-03-10 19:29:00") == [
        ("2026-03-10 17:30", 1),
        ("2026-03-10 18:30", 2),
    ]


def test_it_begins_on_the_quarter_where_the_zone_does() -> None:
    assert hours("Asia/Kathmandu", "2026-03-10 18:14", "2026-03-10 18:15") == [
        ("2026-03-10 17:15", 1),
        ("2026-03-10 18:15", 1),
    ]


def test_it_keeps_the_two_hours_of_the_same_name_apart_when_clocks_go_back() -> None:
    # 2026-10-25: 02:00 to 03:00 comes twice in Berlin, 00:00Z and 01:00Z.
    assert hours("Europe/Berlin", "2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30") == [
        ("2026-10-25 00:00", 1),
        ("2026-10-25 01:00", 1),
        ("2026-10-25 02:00", 1),
    ]


def test_it_skips_the_hour_that_does_not_exist_when_clocks_go_forward() -> None:
    assert hours("America/New_York", "2026-03-08 06:59:59", "2026-03-08 07:00:00") == [
        ("2026-03-08 06:00", 1),
        ("2026-03-08 07:00", 1),
    ]


def test_it_puts_a_local_day_and_month_into_buckets_of_their_own() -> None:
    # Midnight of 1 April in Auckland (still summer time there) is 11:00Z of 31 March.
    assert hours("Pacific/Auckland", "2026-03-31 10:59:59.999", "2026-03-31 11:00") == [
        ("2026-03-31 10:00", 1),
        ("2026-03-31 11:00", 1),
    ]


def test_it_takes_utc_for_a_tenant_it_does_not_know() -> None:
    Tenant.objects.all().delete()
    with connect() as client:
        append(client, usage_event(tenant="gone"))
        assert drain_all(client) == 1
    assert UsageHour.objects.get().hour.minute == 0


def test_it_keeps_currencies_models_and_keys_apart() -> None:
    with connect() as client:
        append(client, usage_event(), usage_event(currency="USD"), usage_event(model="x"), usage_event(key="y"))
        drain_all(client)
    assert UsageHour.objects.count() == 4
