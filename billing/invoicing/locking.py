"""The lock of a tenant's invoices."""

from django.db import connection


def lock_invoices(tenant: str) -> None:
    """Wait until nobody else closes, finalises, voids or credits for `tenant`, to the end of this transaction.

    Usage of periods that are over is written under the same lock, shared (migration 0005): what is read after this call
    is all there is, and stays all there is.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('headrace.invoices'), hashtext(%s))", [tenant])
