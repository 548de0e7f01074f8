"""Making the hours of targets anew, for a ledger whose hours were written by other means than its drain."""

from django.db import connection, transaction

from billing.ledger import targets_of


@transaction.atomic
def rebuild() -> int:
    """Sum all of UsageHour again; how many hours of targets there are. The drain waits meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE billing_targethour IN EXCLUSIVE MODE")
        cursor.execute("DELETE FROM billing_targethour")
        cursor.execute(targets_of("billing_usagehour"))
        return int(cursor.rowcount)
