"""Retention drops whole months of records, oldest first, and only what nothing is still to be made of."""

from datetime import UTC, date, datetime

import pytest
from django.db import connection
from django.db.utils import IntegrityError, InternalError

from billing import partitions, retention
from billing.drain import drain_all
from billing.invoicing.tests.making import close, finalise, make_customer, make_seller
from billing.ledger_check.tests.books import damage, found, priced_event, set_price, settle
from billing.models import DeadLetter, DroppedMonth, Price, UsageHour, UsageRecord
from billing.tests.stream import append, connect, usage_event

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC).replace(day=15)


def ago(months: int) -> datetime:
    month = partitions.shift(NOW.date(), -months)
    return datetime(month.year, month.month, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def two_years() -> None:
    """Two records in each of the last 24 months; of the oldest, three."""
    for months in range(25):
        partitions.ensure_months(ago(months))
    damage("UPDATE billing_price SET effective_from = '2020-01-01'")
    price = set_price()
    damage("UPDATE billing_price SET effective_from = '2020-01-01'")
    settle(*(priced_event(price, ago(months)) for months in range(24) for _ in range(2)), priced_event(price, ago(23)))


def test_it_keeps_everything_unless_told_otherwise() -> None:
    assert retention.drop_old(0, NOW) == retention.Retained({}, [])
    assert UsageRecord.objects.count() == 49


def test_it_drops_the_months_before_and_keeps_their_hours() -> None:
    hours = UsageHour.objects.count()
    done = retention.drop_old(13, NOW)
    assert done.kept == []
    with_records = {month: count for month, count in done.dropped.items() if count}
    assert with_records == {partitions.shift(NOW.date(), -months): 3 if months == 23 else 2 for months in range(14, 24)}
    assert UsageRecord.objects.count() == 28
    assert min(partitions.existing_months()) == partitions.shift(NOW.date(), -13)
    assert UsageHour.objects.count() == hours
    assert found("hours").total == 0, "dropped months are no difference"
    assert DroppedMonth.objects.get(month=partitions.shift(NOW.date(), -23)).records == 3
    assert retention.drop_old(13, NOW).dropped == {}


def test_it_stops_at_a_month_that_is_needed() -> None:
    stuck = ago(20)
    DeadLetter.objects.create(entry="1-0", event=f'{{"admitted_at":"{stuck:%Y-%m}-03T00:00:00.000Z"}}', reason="bad")
    done = retention.drop_old(13, NOW)
    assert [(kept.month, kept.reason) for kept in done.kept] == [
        (stuck.date().replace(day=1), "1 dead letters of it wait")
    ]
    assert max(done.dropped) == partitions.shift(NOW.date(), -21)
    DeadLetter.objects.update(replayed_at=NOW)
    assert max(retention.drop_old(13, NOW).dropped) == partitions.shift(NOW.date(), -14)


def test_it_waits_for_the_invoices_of_whoever_gets_some() -> None:
    seller = make_seller()
    make_customer("acme", seller, created_at=ago(24))
    oldest = partitions.shift(NOW.date(), -23)
    done = retention.drop_old(13, NOW)
    assert done.kept == [retention.Kept(oldest, f"acme's {oldest:%Y-%m} in EUR is not finalised")]
    for invoice in close(NOW):
        if invoice.period <= partitions.shift(NOW.date(), -15):
            finalise(invoice)
    assert max(retention.drop_old(13, NOW).dropped) == partitions.shift(NOW.date(), -15)
    settle(priced_event(Price.objects.get(), ago(14)))
    for invoice in close(NOW):
        finalise(invoice)
    settle(priced_event(Price.objects.get(), ago(14)))
    (kept,) = retention.drop_old(13, NOW).kept
    assert kept.reason == "1 of its records came late and are on no invoice yet"
    assert [found(name).differences for name in ("invoices", "invoiced_usage", "numbers")] == [[], [], []]


def test_usage_of_a_dropped_month_that_comes_late_is_a_dead_letter() -> None:
    retention.drop_old(13, NOW)
    with connect() as client:
        append(client, usage_event(ago(20)))
        assert drain_all(client) == 0
    assert DeadLetter.objects.get().reason == f"no partition for {ago(20):%Y-%m}"


@pytest.mark.parametrize("months", [0, 1])
def test_the_database_refuses_to_drop_a_young_month(months: int) -> None:
    with pytest.raises((IntegrityError, InternalError), match="too young"):
        partitions.drop_month(ago(months).date())


def test_it_knows_no_partition_of_a_month_that_never_was() -> None:
    assert partitions.drop_month(date(2001, 1, 1)) is None


def test_it_is_closed_to_the_screens() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_function_privilege('headrace_app', 'headrace_drop_usage_partition(date)', 'EXECUTE')"
        )
        assert cursor.fetchone() == (False,)
        cursor.execute("SELECT has_column_privilege('headrace_app', 'billing_droppedmonth', 'month', 'SELECT')")
        assert cursor.fetchone() == (True,)
