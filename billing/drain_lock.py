"""Who may take from the usage stream: any number of drains at once, or one that makes budgets' counters anew, alone.

A drain holds the lock, shared, from reading a batch until it is acknowledged; so whoever has it alone finds each event
either in the stream or in the ledger, never in both. It is the session's, not the transaction's: a batch is
acknowledged after its commit. A process that dies loses it with its connection.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_NUMBER = "hashtext('headrace.drain')"


@contextmanager
def shared() -> Iterator[None]:
    with _held("_shared"):
        yield


@contextmanager
def alone() -> Iterator[None]:
    """As `shared`, but alone. Inside it, the same connection may drain."""
    with _held(""):
        yield


@contextmanager
def _held(kind: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_lock{kind}({_NUMBER})")
    try:
        yield
    finally:
        if connection.connection is not None and not connection.connection.closed:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock{kind}({_NUMBER})")
