"""Monthly partitions: made ahead, by a worker that owns no table, and closed to the screens' role."""

from datetime import UTC, date, datetime

import pytest
from django.db import ProgrammingError, connection, transaction

from billing.partitions import ensure_months, existing_months, month_of, shift

pytestmark = pytest.mark.django_db


def test_it_has_last_month_this_and_two_more_from_the_first_migration() -> None:
    today = datetime.now(UTC).date()
    assert {shift(today, distance) for distance in (-1, 0, 1, 2)} <= existing_months()


def test_it_makes_the_months_around_a_time_once() -> None:
    now = datetime(2031, 12, 31, 23, 59, tzinfo=UTC)
    made = [date(2031, 11, 1), date(2031, 12, 1), date(2032, 1, 1), date(2032, 2, 1)]
    assert ensure_months(now) == made
    assert ensure_months(now) == []
    assert set(made) <= existing_months()


def test_it_counts_months_in_utc() -> None:
    assert month_of(datetime.fromisoformat("2026-04-01T01:00:00+02:00")) == date(2026, 3, 1)


@pytest.mark.parametrize("role", ["headrace_app", "headrace_system"])
def test_it_lets_no_other_role_make_or_drop_tables(role: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        for statement in ("CREATE TABLE mine ()", "DROP TABLE billing_usagerecord"):
            with pytest.raises(ProgrammingError), transaction.atomic():
                cursor.execute(statement)


def test_it_closes_the_partitions_and_the_maker_to_the_screens() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE headrace_app")
        month = f"{datetime.now(UTC):%Y%m}"
        for statement in (
            f"SELECT * FROM billing_usagerecord_{month}",
            "SELECT headrace_usage_partition('2040-01-01')",
        ):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                cursor.execute(statement)
