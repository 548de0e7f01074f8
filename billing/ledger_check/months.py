"""Which months there are in the books. A month is one of UTC, called by its first day, as partitions are."""

from datetime import date

from django.db import connection

from billing import partitions

_ALL = """
SELECT DISTINCT date_trunc('month', hour, 'UTC') FROM billing_usagehour
UNION SELECT DISTINCT date_trunc('month', day, 'UTC') FROM billing_usageday
UNION SELECT DISTINCT date_trunc('month', hour, 'UTC') FROM billing_targethour
UNION SELECT DISTINCT date_trunc('month', period_start, 'UTC') FROM billing_invoice
"""


def all_months() -> list[date]:
    """The months that have a partition, or anything in hours, days or invoices. Reads all of these."""
    with connection.cursor() as cursor:
        cursor.execute(_ALL)
        summed = {partitions.month_of(month) for (month,) in cursor.fetchall()}
    return sorted(partitions.existing_months() | summed)
