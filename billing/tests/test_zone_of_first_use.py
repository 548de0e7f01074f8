"""A tenant's first use, and another time zone for it at the same moment: its hours are of the zone that it has."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from billing.invoicing.tests.making import event_of, utc, write
from billing.models import UsageHour
from billing.periods import calendar_of
from tenants.models import Tenant
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)
AT = utc("2026-11-05 12:10")


def change_zone(slug: str) -> None:
    try:
        tenant = Tenant.objects.get(slug=slug)
        tenant.time_zone = "Asia/Kolkata"
        tenant.save()
    finally:
        connection.close()


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("is_written_first", [True, False])
def test_first_use_is_summed_in_the_zone_that_its_tenant_has(is_written_first: bool) -> None:
    tenant = make_tenant("acme", time_zone="UTC")
    event = event_of(AT, tenant=tenant.slug)
    with ThreadPoolExecutor(1) as pool:
        if is_written_first:
            with transaction.atomic():
                write(event)
                changing = pool.submit(change_zone, tenant.slug)
                until = time.monotonic() + 10
                while not changing.done() and not waiting():
                    assert time.monotonic() < until
            changing.result(10)
        else:
            pool.submit(change_zone, tenant.slug).result(10)
            write(event)
    calendar = calendar_of(tenant.slug)
    assert calendar.time_zone_at(AT) == ("UTC" if is_written_first else "Asia/Kolkata")
    assert [hour.hour for hour in UsageHour.objects.of(tenant)] == [calendar.hour_start(AT)]
