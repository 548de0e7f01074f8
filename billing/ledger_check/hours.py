"""Records = rollups: every sum of every hour, in each month whose records are kept; and what is summed from hours."""

from datetime import date
from typing import Any

import redis

from billing import partitions
from billing.ledger import BUCKET, DAY_BUCKET, SUMS, TARGET_BUCKET, TARGET_SUMS, day_sums, hours_of, target_sums
from billing.ledger_check.check import MOST_SHOWN, Check, Outcome, rows

# An hour's records are admitted within it; where clocks are set back by half an hour, it has ninety minutes.
_RECORDS = """(SELECT * FROM billing_usagerecord
    WHERE admitted_at >= %(start)s AND admitted_at < %(end)s::timestamptz + interval '2 hours')"""


def _comparison(summed: str, kept: str, bucket: tuple[str, ...]) -> str:
    """The query of the rows in which `kept` is not what was `summed`, the first of them, and how many there are."""
    columns = ", ".join(bucket)
    return f"""
WITH compared AS (
    SELECT {columns}, {", ".join(f"s.{name} AS s_{name}, k.{name} AS k_{name}" for name in SUMS)}
    FROM {summed} AS s FULL JOIN {kept} AS k USING ({columns})
), different AS (
    SELECT * FROM compared WHERE {" OR ".join(f"s_{name} IS DISTINCT FROM k_{name}" for name in SUMS)}
)
SELECT (SELECT count(*) FROM compared) AS compared, (SELECT count(*) FROM different) AS total, d.*
FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM different ORDER BY {columns} LIMIT {MOST_SHOWN}) AS d ON true
"""


_MONTH = "hour >= %(start)s AND hour < %(end)s"
_HOURS = _comparison(
    f"(SELECT * FROM ({hours_of(_RECORDS)}) AS summed WHERE {_MONTH})",
    f"(SELECT * FROM billing_usagehour WHERE {_MONTH})",
    BUCKET,
)
_DAYS = _comparison(f"({day_sums('billing_usagehour')})", "billing_usageday", DAY_BUCKET)
_TARGETS = f"""
WITH compared AS (
    SELECT {", ".join(TARGET_BUCKET)}
    FROM ({target_sums("billing_usagehour")}) AS s FULL JOIN billing_targethour AS k USING ({", ".join(TARGET_BUCKET)})
    WHERE {" OR ".join(f"s.{name} IS DISTINCT FROM k.{name}" for name in TARGET_SUMS)}
)
SELECT (SELECT count(*) FROM billing_targethour) AS compared, (SELECT count(*) FROM compared) AS total, d.*
FROM (SELECT 1) AS one
LEFT JOIN (SELECT * FROM compared ORDER BY {", ".join(TARGET_BUCKET)} LIMIT {MOST_SHOWN}) AS d ON true
"""


class Hours(Check):
    name = "hours"
    text = "each hour = the sum of its records and corrections, in every column"

    def run(self, client: "redis.Redis") -> Outcome:
        outcome = Outcome()
        for month in sorted(_months() - partitions.dropped_months()):
            start, end = partitions.month_span(month)
            found = rows(_HOURS, {"start": start, "end": end})
            outcome.compared += found[0]["compared"]
            for row in found if found[0]["total"] else []:
                outcome.add(_told(row, BUCKET, "record"))
            outcome.total += max(0, found[0]["total"] - MOST_SHOWN)
        return outcome


class Days(Check):
    name = "days"
    text = "each day of a tenant, which its pages read, = the sum of its hours, in every column"

    def run(self, client: "redis.Redis") -> Outcome:
        found = rows(_DAYS)
        told = [_told(row, DAY_BUCKET, "hour") for row in found if found[0]["total"]]
        return Outcome(found[0]["compared"], told, found[0]["total"])


class TargetHours(Check):
    name = "target_hours"
    text = "each hour of a target, which engine cost is divided by, = the sum of its hours over tenants"

    def run(self, client: "redis.Redis") -> Outcome:
        found = rows(_TARGETS)
        different = found if found[0]["total"] else []
        told = [f"{row['hour']:%Y-%m-%dT%H:%MZ} {row['target']} {row['model']} {row['currency']}" for row in different]
        return Outcome(found[0]["compared"], told, found[0]["total"])


def _months() -> set[date]:
    """The months that have records or hours."""
    hours = rows("SELECT DISTINCT date_trunc('month', hour, 'UTC') AS month FROM billing_usagehour")
    return partitions.existing_months() | {partitions.month_of(row["month"]) for row in hours}


def _told(row: dict[str, Any], bucket: tuple[str, ...], summed: str) -> str:
    """`bucket` is that of an hour or a day, `summed` what it is the sum of: record or hour."""
    tenant, kept, *others = bucket
    where = " ".join(f"{name}={row[name] or '-'}" for name in (tenant, *others))
    differing = [name for name in SUMS if row[f"s_{name}"] != row[f"k_{name}"]]
    if row["k_requests"] is None:
        said = f"there are {summed}s and no {kept}"
    elif row["s_requests"] is None:
        said = f"there is {'an' if kept == 'hour' else 'a'} {kept} and no {summed}s"
    else:
        said = ", ".join(f"{name}: {summed}s {row[f's_{name}']}, {kept} {row[f'k_{name}']}" for name in differing)
    return f"{row[kept]:%Y-%m-%dT%H:%MZ} {where}: {said}"
