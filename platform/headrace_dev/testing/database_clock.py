"""The database's clock, by which prices begin."""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
