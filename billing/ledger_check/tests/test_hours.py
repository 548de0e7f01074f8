"""The check of records against hours sees every kind of difference, and none where there is none."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from billing.ledger import SUMS
from billing.ledger_check.tests.books import damage, found, priced_event, set_price, settle
from billing.models import DroppedMonth, UsageHour
from billing.partitions import ensure_months, month_of
from billing.tests.stream import usage_event
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


def test_it_finds_nothing_in_an_empty_ledger() -> None:
    assert (found("hours").compared, found("hours").total) == (0, 0)


def test_it_agrees_over_zones_month_ends_corrections_and_the_unpriced() -> None:
    Tenant.objects.create(slug="kolkata", name="Kolkata", time_zone="Asia/Kolkata")
    Tenant.objects.create(slug="howe", name="Howe", time_zone="Australia/Lord_Howe")
    ensure_months(datetime(2026, 4, 10, tzinfo=UTC))
    price = set_price()
    times = [datetime(2026, 3, 31, 23, minute, tzinfo=UTC) for minute in (5, 35, 59)]
    times += [datetime(2026, 4, 1, 0, minute, tzinfo=UTC) for minute in (0, 29, 31)]
    times += [datetime(2026, 4, 4, 14, 30, tzinfo=UTC) + timedelta(minutes=20 * n) for n in range(6)]  # clocks go back
    for tenant in ("kolkata", "howe", "unknown"):
        for at in times:
            event = priced_event(price, at, tenant=tenant)
            settle(event, event | {"part": 1}, usage_event(at, tenant=tenant, cost=None, cost_nano=None, price=None))
    outcome = found("hours")
    assert outcome.differences == []
    assert outcome.compared == UsageHour.objects.count()


@pytest.mark.parametrize("column", SUMS)
def test_it_sees_a_wrong_sum_in_every_column(column: str) -> None:
    settle(priced_event(set_price()), priced_event(set_price("other")))
    damage(f"UPDATE billing_usagehour SET {column} = {column} + 1 WHERE model = 'demo'")
    outcome = found("hours")
    assert (outcome.compared, outcome.total) == (2, 1)
    (told,) = outcome.differences
    assert f"{column}: records " in told
    assert "model=demo" in told


def test_it_sees_a_lost_hour_a_lost_record_and_a_doubled_one() -> None:
    price = set_price()
    settle(*(priced_event(price, tenant=tenant) for tenant in ("a", "b", "c", "d")))
    damage("DELETE FROM billing_usagehour WHERE tenant = 'a'")
    damage("DELETE FROM billing_usagerecord WHERE tenant = 'b'")
    damage("UPDATE billing_usagerecord SET tenant = 'd' WHERE tenant = 'c'")
    told = found("hours").differences
    assert len(told) == 4
    assert sum("there are records and no hour" in line for line in told) == 1
    assert sum("there is an hour and no records" in line for line in told) == 2
    assert any("tenant=d" in line and "requests: records 2, hour 1" in line for line in told)


def test_it_shows_the_first_hundred_and_counts_all() -> None:
    price = set_price()
    settle(*(priced_event(price, key=f"key{number}") for number in range(130)))
    damage("UPDATE billing_usagehour SET requests = 5")
    outcome = found("hours")
    assert (len(outcome.differences), outcome.total) == (100, 130)


def test_it_takes_a_month_that_retention_dropped_for_no_difference_and_one_that_just_went_for_one() -> None:
    long_ago = timezone.now() - timedelta(days=200)
    ensure_months(long_ago)
    settle(priced_event(set_price(), long_ago))
    damage(f"DROP TABLE billing_usagerecord_{long_ago:%Y%m}")
    assert found("hours").total == 1
    DroppedMonth.objects.create(month=month_of(long_ago), dropped_at=timezone.now(), records=1)
    assert found("hours").total == 0


def test_it_sees_an_hour_of_a_target_that_is_off() -> None:
    price = set_price()
    settle(priced_event(price), priced_event(price, tenant="globex"))
    assert (found("target_hours").compared, found("target_hours").total) == (1, 0)
    damage("UPDATE billing_targethour SET output_tokens = output_tokens + 1")
    (told,) = found("target_hours").differences
    assert "target=local model=demo currency=EUR: output_tokens: tenant hours 14, hour 15" in told


def test_it_sees_a_day_that_is_off_a_lost_one_and_one_too_many() -> None:
    price = set_price()
    settle(*(priced_event(price, tenant=tenant) for tenant in ("a", "b", "c")))
    assert (found("days").compared, found("days").total) == (3, 0)
    damage("UPDATE billing_usageday SET output_tokens = output_tokens + 1 WHERE tenant = 'a'")
    damage("DELETE FROM billing_usageday WHERE tenant = 'b'")
    damage("UPDATE billing_usageday SET day = day - interval '1 day' WHERE tenant = 'c'")
    told = found("days").differences
    assert len(told) == found("days").total == 4
    assert any("tenant=a" in line and "output_tokens: hours 7, day 8" in line for line in told)
    assert sum("there are hours and no day" in line for line in told) == 2
    assert sum("there is a day and no hours" in line for line in told) == 1
