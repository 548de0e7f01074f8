"""Records = rollups: every sum of every hour, in each month whose records are kept; and what is summed from hours."""

from collections.abc import Mapping
from typing import Any

from billing.ledger import BUCKET, DAY_BUCKET, SUMS, TARGET_BUCKET, TARGET_SUMS, day_sums, hours_of, target_sums
from billing.ledger_check.check import MonthlyCheck, Outcome, first_of, outcome_of, rows

# An hour's records are admitted within it; where clocks are set back by half an hour, it has ninety minutes.
_RECORDS = """(SELECT * FROM billing_usagerecord
    WHERE admitted_at >= %(start)s AND admitted_at < %(end)s::timestamptz + interval '2 hours')"""
# A day's hours begin within it, or in the hour before where its midnight comes twice; the first day of a period in
# another zone may last for two.
_DAY_HOURS = """(SELECT * FROM billing_usagehour
    WHERE hour >= %(start)s::timestamptz - interval '2 hours' AND hour < %(end)s::timestamptz + interval '3 days')"""


def _comparison(summed: str, kept: str, bucket: tuple[str, ...], sums: tuple[str, ...]) -> str:
    """The query of the rows of the month in which `kept`, a table, is not what was `summed`, a query."""
    columns, at = ", ".join(bucket), next(name for name in bucket if name in {"hour", "day"})
    month = f"{at} >= %(start)s AND {at} < %(end)s"
    compared = f"""
    SELECT {columns}, {", ".join(f"s.{name} AS s_{name}, k.{name} AS k_{name}" for name in sums)}
    FROM (SELECT * FROM ({summed}) AS summed WHERE {month}) AS s
    FULL JOIN (SELECT * FROM {kept} WHERE {month}) AS k USING ({columns})"""
    return first_of(
        f"SELECT * FROM compared WHERE {' OR '.join(f's_{name} IS DISTINCT FROM k_{name}' for name in sums)}",
        columns,
        compared="SELECT count(*) FROM compared",
        given=f"compared AS MATERIALIZED ({compared})",
    )


_HOURS = _comparison(hours_of(_RECORDS), "billing_usagehour", BUCKET, tuple(SUMS))
_DAYS = _comparison(day_sums(_DAY_HOURS), "billing_usageday", DAY_BUCKET, tuple(SUMS))
_TARGETS = _comparison(
    target_sums("(SELECT * FROM billing_usagehour WHERE hour >= %(start)s AND hour < %(end)s) AS h"),
    "billing_targethour",
    TARGET_BUCKET,
    TARGET_SUMS,
)


class Hours(MonthlyCheck):
    name = "hours"
    text = "each hour = the sum of its records and corrections, in every column"

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        found = rows(_HOURS, span)
        return outcome_of(found, (_difference(row, BUCKET, tuple(SUMS), "record") for row in found))


class Days(MonthlyCheck):
    name = "days"
    text = "each day of a tenant, which its pages read, = the sum of its hours, in every column"
    needs_records = False

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        found = rows(_DAYS, span)
        return outcome_of(found, (_difference(row, DAY_BUCKET, tuple(SUMS), "hour") for row in found))


class TargetHours(MonthlyCheck):
    name = "target_hours"
    text = "each hour of a target, which engine cost is divided by, = the sum of its hours over tenants"
    needs_records = False

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        found = rows(_TARGETS, span)
        return outcome_of(found, (_difference(row, TARGET_BUCKET, TARGET_SUMS, "tenant hour") for row in found))


def _difference(row: Mapping[str, Any], bucket: tuple[str, ...], sums: tuple[str, ...], summed: str) -> str:
    """What of a row of _comparison differs. `summed` is what its kept sums are made of: record or hour."""
    kept = "day" if "day" in bucket else "hour"
    where = " ".join(f"{name}={row[name] or '-'}" for name in bucket if name != kept)
    differing = [name for name in sums if row[f"s_{name}"] != row[f"k_{name}"]]
    if row[f"k_{sums[0]}"] is None:
        said = f"there are {summed}s and no {kept}"
    elif row[f"s_{sums[0]}"] is None:
        said = f"there is {'an' if kept == 'hour' else 'a'} {kept} and no {summed}s"
    else:
        said = ", ".join(f"{name}: {summed}s {row[f's_{name}']}, {kept} {row[f'k_{name}']}" for name in differing)
    return f"{row[kept]:%Y-%m-%dT%H:%MZ} {where}: {said}"
