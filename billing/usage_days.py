"""Making the days of usage anew, for a ledger whose hours were written by other means than its drain."""

from django.db import connection, transaction

from billing.ledger import days_of


@transaction.atomic
def rebuild() -> int:
    """Sum all of UsageHour again; how many days there are. The drain waits meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE billing_usageday IN EXCLUSIVE MODE")
        cursor.execute("DELETE FROM billing_usageday")
        cursor.execute(days_of("billing_usagehour"))
        return int(cursor.rowcount)
