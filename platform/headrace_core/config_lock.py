"""One writer of the configuration at a time: the feed's triggers take this lock as well (headrace.ConfigChange)."""

from django.db import connection


def lock_configuration() -> None:
    """Nobody else changes a configured row until this transaction ends: what is read from here on stays true."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('headrace.config'))")
