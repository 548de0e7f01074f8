"""Records = rollups: every sum of every hour, in each month whose records are kept."""

from datetime import date
from typing import Any

import redis

from billing import partitions
from billing.ledger import BUCKET, SUMS, TARGET_BUCKET, TARGET_SUMS, hours_of, target_sums
from billing.ledger_check.check import MOST_SHOWN, Check, Outcome, rows

# An hour's records are admitted within it; where clocks are set back by half an hour, it has ninety minutes.
_RECORDS = """(SELECT * FROM billing_usagerecord
    WHERE admitted_at >= %(start)s AND admitted_at < %(end)s::timestamptz + interval '2 hours')"""
_COMPARE = f"""
WITH summed AS ({hours_of(_RECORDS)}),
kept AS (SELECT * FROM billing_usagehour WHERE hour >= %(start)s AND hour < %(end)s),
compared AS (
    SELECT {", ".join(BUCKET)}, {", ".join(f"s.{name} AS s_{name}, k.{name} AS k_{name}" for name in SUMS)}
    FROM (SELECT * FROM summed WHERE hour >= %(start)s AND hour < %(end)s) AS s
    FULL JOIN kept AS k USING ({", ".join(BUCKET)})
), different AS (
    SELECT * FROM compared WHERE {" OR ".join(f"s_{name} IS DISTINCT FROM k_{name}" for name in SUMS)}
)
SELECT (SELECT count(*) FROM compared) AS compared, (SELECT count(*) FROM different) AS total, d.*
FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM different ORDER BY {", ".join(BUCKET)} LIMIT {MOST_SHOWN}) AS d ON true
"""

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
            found = rows(_COMPARE, {"start": start, "end": end})
            outcome.compared += found[0]["compared"]
            for row in found if found[0]["total"] else []:
                outcome.add(_told(row))
            outcome.total += max(0, found[0]["total"] - MOST_SHOWN)
        return outcome


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


def _told(row: dict[str, Any]) -> str:
    where = " ".join(f"{name}={row[name] or '-'}" for name in BUCKET if name != "hour")
    differing = [name for name in SUMS if row[f"s_{name}"] != row[f"k_{name}"]]
    if row["k_requests"] is None:
        said = "there are records and no hour"
    elif row["s_requests"] is None:
        said = "there is an hour and no records"
    else:
        said = ", ".join(f"{name}: records {row[f's_{name}']}, hour {row[f'k_{name}']}" for name in differing)
    return f"{row['hour']:%Y-%m-%dT%H:%MZ} {where}: {said}"
