"""The price that was in force for each record, derived from the price list alone, in SQL.

Not by the code that charges: that is what the check is there to judge. Of the prices for a record's model and currency
the one for its tenant and target counts before the tenant's, that before the target's, that before the model's; of one
scope the latest that had begun. A scope, once it has a price, has one for ever: so each price is in force from its
beginning until the next of its scope begins, or the first of a scope that counts before it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

SCOPE = ("model", "target", "tenant", "currency")
SPANS = "right_price"
_MAKE = f"""
CREATE TEMPORARY TABLE {SPANS} ON COMMIT DROP AS
WITH scopes AS (
    SELECT DISTINCT {", ".join(SCOPE)} FROM {{table}} WHERE {{at}} >= %(start)s AND {{at}} < %(end)s
), candidates AS (
    SELECT s.*, p.version, p.effective_from AS begins,
           CASE WHEN p.tenant = '' THEN 2 ELSE 0 END + CASE WHEN p.target = '' THEN 1 ELSE 0 END AS place
    FROM scopes AS s JOIN billing_price AS p ON p.model = s.model AND p.currency = s.currency
         AND p.target IN ('', s.target) AND p.tenant IN ('', s.tenant)
), spans AS (
    SELECT *, least(
        lead(begins) OVER (PARTITION BY {", ".join(SCOPE)}, place ORDER BY begins),
        min(begins) OVER (PARTITION BY {", ".join(SCOPE)} ORDER BY place
                          GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS ends
    FROM candidates
)
SELECT {", ".join(SCOPE)}, version, begins, coalesce(ends, 'infinity') AS ends FROM spans
WHERE ends IS NULL OR begins < ends
"""


@contextmanager
def right_prices(table: str, at: str, span: Mapping[str, Any]) -> Iterator[None]:
    """Within, the table SPANS has (*SCOPE, version, begins, ends) for each scope of the rows of `table` whose `at` is
    in the span. At most one span of a scope holds an instant."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_MAKE.format(table=table, at=at), span)
        cursor.execute(f"ANALYZE {SPANS}")  # or it is joined row by row
        yield
        cursor.execute(f"DROP TABLE {SPANS}")


def in_force(row: str, at: str) -> str:
    """The join that finds the price in force for `row` at an instant, as s; none: its version is NULL."""
    same = " AND ".join(f"s.{name} = {row}.{name}" for name in SCOPE)
    return f"LEFT JOIN {SPANS} AS s ON {same} AND s.begins <= {at} AND s.ends > {at}"
