"""A month's partition out of the ledger while it is filled: without indexes it takes rows three times as fast.

When it comes back, PostgreSQL makes the indexes, triggers and constraints that the ledger's partitions have.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from billing.partitions import month_of, month_span

LEDGER = "billing_usagerecord"
_INDEXES = """
SELECT format('ALTER TABLE %%I DROP CONSTRAINT %%I', %(table)s, conname) FROM pg_constraint
WHERE conrelid = %(table)s::regclass AND contype IN ('p', 'u')
UNION ALL
SELECT format('DROP INDEX %%I', indexrelid::regclass) FROM pg_index
WHERE indrelid = %(table)s::regclass AND NOT indisprimary AND NOT indisunique
"""


def partition_of(moment: datetime) -> str:
    return f"{LEDGER}_{moment:%Y%m}"


@contextmanager
def detached(cursor: Any, months: list[datetime]) -> Iterator[None]:
    """The empty partitions of `months` (their first instants), apart and without indexes."""
    for month in months:
        partition = partition_of(month)
        cursor.execute(f"ALTER TABLE {LEDGER} DETACH PARTITION {partition}")
        cursor.execute(_INDEXES, {"table": partition})
        for (statement,) in cursor.fetchall():
            cursor.execute(statement)
    yield
    cursor.execute("SET maintenance_work_mem = '512MB'")
    for month in months:
        start, end = month_span(month_of(month))
        cursor.execute(
            f"ALTER TABLE {LEDGER} ATTACH PARTITION {partition_of(month)} FOR VALUES FROM (%s) TO (%s)", [start, end]
        )
