"""A nightly check reads what changed, what differed and one other month, however many there are; --all reads all."""

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from billing import rebuilding
from billing.ledger_check import due, nightly, report
from billing.ledger_check.check import MonthlyCheck
from billing.ledger_check.registry import CHECKS
from billing.ledger_check.tests.books import damage, make_cast, priced_event, set_price, settle
from billing.models import Invoice, MonthChange, Price
from billing.partitions import month_of, month_span, shift
from billing.tests.stream import connect
from tenants.models import Tenant

pytestmark = pytest.mark.django_db
MONTHS = 13


@pytest.fixture
def months() -> list[date]:
    """Thirteen with a record each, the last of them this one; none was ever read."""
    make_cast()
    this = month_of(timezone.now())
    found = [shift(this, -distance) for distance in reversed(range(MONTHS))]
    price = set_price()
    with connection.cursor() as cursor:
        for month in found:
            cursor.execute("SELECT headrace_usage_partition(%s)", [month])
    settle(*(priced_event(price, middle_of(month)) for month in found))
    return found


def middle_of(month: date) -> datetime:
    """A moment of it that has been."""
    return min(month_span(month)[0] + timedelta(days=14), timezone.now())


def pass_hours() -> None:
    """What was written was written three hours ago."""
    MonthChange.objects.update(at=timezone.now() - timedelta(hours=3))


class Night:
    """Runs checks as the worker does, and notes which months each of them read."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spool = tmp_path
        self._read: list[tuple[str, date]] = []
        for check in CHECKS.values():
            if isinstance(check, MonthlyCheck):
                monkeypatch.setattr(check, "of_month", self._noting(check))

    def _noting(self, check: MonthlyCheck):  # type: ignore[no-untyped-def]
        of_month = check.of_month

        def noted(span):  # type: ignore[no-untyped-def]
            self._read.append((check.name, span["month"]))
            return of_month(span)

        return noted

    def check(self) -> list[date]:
        """One night's check: the months that were read, the same by every check."""
        self._read.clear()
        with connect() as client:
            self.differences = nightly.check(client, spool=self._spool).differences
        by_check = {name: [month for of, month in self._read if of == name] for name, _ in self._read}
        assert len(by_check) == sum(isinstance(check, MonthlyCheck) for check in CHECKS.values())
        (read,) = {tuple(read) for read in by_check.values()}
        return list(read)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    return Night(tmp_path, monkeypatch)


def test_a_night_reads_this_month_what_changed_and_one_other_of_thirteen(months: list[date], night: Night) -> None:
    assert night.check() == months
    pass_hours()
    night.check()  # what was written shortly before the first is read once more
    in_turn = []
    for _ in range(MONTHS - 1):
        read = night.check()
        assert len(read) == 2
        assert read[-1] == months[-1]
        in_turn.append(read[0])
    assert sorted(in_turn) == months[:-1]
    settle(priced_event(Price.objects.get(), middle_of(months[3])))
    read = night.check()
    assert months[3] in read
    assert len(read) == 3


def test_as_many_months_are_read_of_two_as_of_thirteen(months: list[date], night: Night) -> None:
    night.check()
    pass_hours()
    night.check()
    assert len(night.check()) == 2
    for month in months[:-2]:
        damage(f"DROP TABLE billing_usagerecord_{month:%Y%m}")
    for table, at in (("usagehour", "hour"), ("usageday", "day"), ("targethour", "hour")):
        damage(f"DELETE FROM billing_{table} WHERE {at} < '{months[-2]}'")
    damage(f"DELETE FROM billing_checkedmonth WHERE month < '{months[-2]}'")
    assert len(night.check()) == 2


def test_a_month_that_differs_is_read_until_it_agrees(months: list[date], night: Night) -> None:
    night.check()
    pass_hours()
    night.check()
    damage(f"UPDATE billing_usagehour SET errors = errors + 1 WHERE hour < '{months[1]}'")  # past the triggers
    nights = 1
    while months[0] not in night.check():
        assert night.differences == 0
        nights += 1
    assert nights < MONTHS
    assert night.differences == 2  # of its records, and of its day
    assert months[0] in night.check()
    damage("UPDATE billing_usagehour SET errors = 0")
    assert months[0] in night.check()
    assert night.differences == 0
    assert months[0] not in night.check()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE billing_usagehour SET requests = 5 WHERE hour >= '{first}' AND hour < '{next}'",
        "DELETE FROM billing_usagehour WHERE hour >= '{first}' AND hour < '{next}'",
        "UPDATE billing_usageday SET requests = 5 WHERE day >= '{first}' AND day < '{next}'",
        "UPDATE billing_usageday SET day = now() WHERE day >= '{first}' AND day < '{next}'",
        "DELETE FROM billing_targethour WHERE hour >= '{first}' AND hour < '{next}'",
    ],
)
def test_every_change_of_an_old_month_is_read_the_next_night(months: list[date], night: Night, change: str) -> None:
    night.check()
    pass_hours()
    night.check()
    first, beyond = months[5], months[6]
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE NONE")
        cursor.execute(change.format(first=first, next=beyond))
        cursor.execute("SET ROLE headrace_system")
    assert first in night.check()
    assert night.differences > 0


def test_an_invoice_has_its_month_read_again(months: list[date], night: Night) -> None:
    night.check()
    pass_hours()
    night.check()
    start, end = month_span(months[2])
    Invoice.objects.create(
        tenant=Tenant.objects.get(slug="acme"),
        currency="EUR",
        period=months[2],
        period_start=start,
        period_end=end,
        time_zone="UTC",
    )
    assert months[2] in night.check()


def test_a_change_is_noted_once_an_hour(months: list[date]) -> None:
    price = Price.objects.get()
    before = MonthChange.objects.count()
    for _ in range(3):
        settle(priced_event(price))
    assert MonthChange.objects.count() == before == MONTHS


def test_days_that_are_summed_again_have_all_months_read(months: list[date], night: Night) -> None:
    night.check()
    pass_hours()
    night.check()
    rebuilding.days()
    assert night.check() == months


def test_what_changes_while_a_check_runs_is_read_the_next_time(months: list[date]) -> None:
    began, month = timezone.now(), months[4]
    MonthChange.objects.all().delete()
    MonthChange.objects.create(month=month, at=began - timedelta(hours=5))
    MonthChange.objects.create(month=month, at=began.replace(minute=0, second=0, microsecond=0))
    due.note_checked(months, began=began, differing=[])
    assert month in due.due_months(began + timedelta(days=1))
    due.note_checked([month], began=began + timedelta(days=1), differing=[])
    assert not MonthChange.objects.exists()


def test_the_whole_of_it_reads_every_month_and_notes_nothing(months: list[date], night: Night, tmp_path: Path) -> None:
    night.check()
    damage(f"UPDATE billing_usagehour SET errors = errors + 1 WHERE hour < '{months[1]}'")
    with connect() as client:
        found = report.check(client, spool=tmp_path)
    assert [month for month in found.months if month in months] == months
    assert found.differing == {months[0]}
    assert found.is_whole
