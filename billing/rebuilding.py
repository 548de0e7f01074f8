"""Summing UsageHour up again, for a ledger whose hours were written by other means than its drain, which waits."""

from django.db import connection, transaction

from billing.ledger import days_of, targets_of


def days() -> int:
    """Make UsageDay anew; how many rows there are."""
    return _again("billing_usageday", days_of("billing_usagehour"))


def target_hours() -> int:
    """Make TargetHour anew; how many rows there are."""
    return _again("billing_targethour", targets_of("billing_usagehour"))


@transaction.atomic
def _again(table: str, insert: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
        cursor.execute(f"DELETE FROM {table}")
        cursor.execute(insert)
        return int(cursor.rowcount)
