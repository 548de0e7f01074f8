"""Each row's cost = its tokens at the rates of the price that it states."""

from typing import Any

import redis

from billing.ledger_check.check import MOST_SHOWN, Check, Outcome, rows
from billing.usage import PRICING

# billing/pricing.py in SQL: numerics of at most twelve places, so nothing is rounded. What was priced later was taken
# from no budget once, and at a price that came after it (late_pricing.py).
_AT_PRICE = """(({row}.input_tokens - {row}.cached_input_tokens) * p.input
    + {row}.cached_input_tokens * p.cached_input + {row}.output_tokens * p.output) * 0.000001"""
_NANO = "CASE WHEN at_price IS NOT NULL THEN greatest(least(ceil(at_price * 1000000000), 9e18), -9e18) END"
_ROWS = f"""
WITH priced AS (
    SELECT r.request_id, r.part, r.price, r.cost, r.cost_nano, {_AT_PRICE.format(row="r")} AS at_price,
           p.version IS NOT NULL AND p.model = r.model AND p.currency = r.currency AND p.tenant IN ('', r.tenant)
               AND p.target IN ('', r.target)
               AND (date_trunc('milliseconds', p.effective_from) <= r.admitted_at OR r.kind = '{PRICING}') AS applies,
           r.kind = '{PRICING}' AS is_priced_later
    FROM billing_usagerecord AS r LEFT JOIN billing_price AS p ON p.version = r.price
), different AS (
    SELECT * FROM priced
    WHERE cost IS DISTINCT FROM at_price
       OR (cost_nano IS DISTINCT FROM {_NANO} AND NOT (is_priced_later AND cost_nano = 0))
       OR (price IS NOT NULL AND NOT applies)
)
SELECT (SELECT count(*) FROM billing_usagerecord) AS compared, (SELECT count(*) FROM different) AS total, d.*
FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM different ORDER BY request_id, part LIMIT {MOST_SHOWN}) AS d ON true
"""
_HOURS = f"""
WITH different AS (
    SELECT h.*, {_AT_PRICE.format(row="h")} AS at_price
    FROM billing_usagehour AS h LEFT JOIN billing_price AS p ON p.version = h.price
    WHERE h.cost IS DISTINCT FROM coalesce({_AT_PRICE.format(row="h")}, 0)
)
SELECT (SELECT count(*) FROM billing_usagehour) AS compared, (SELECT count(*) FROM different) AS total, d.*
FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM different ORDER BY tenant, hour LIMIT {MOST_SHOWN}) AS d ON true
"""


class Costs(Check):
    name = "costs"
    text = "each record's cost = its tokens at the rates of its price, in force when it was admitted"

    def run(self, client: "redis.Redis") -> Outcome:
        return _outcome(rows(_ROWS), _record)


class HourCosts(Check):
    name = "hour_costs"
    text = "each hour's cost = its tokens at the rates of its price, whether or not its records are kept"

    def run(self, client: "redis.Redis") -> Outcome:
        return _outcome(rows(_HOURS), _hour)


def _outcome(found: list[dict[str, Any]], told: Any) -> Outcome:
    total = found[0]["total"]
    return Outcome(found[0]["compared"], [told(row) for row in found if total], total)


def _record(row: dict[str, Any]) -> str:
    who = f"{row['request_id']}/{row['part']}"
    if row["price"] is not None and not row["applies"]:
        return f"{who}: its price {row['price']} is none that applied to it"
    return f"{who}: cost {row['cost']} ({row['cost_nano']} nano), at {row['price'] or 'no price'} {row['at_price']}"


def _hour(row: dict[str, Any]) -> str:
    where = f"{row['hour']:%Y-%m-%dT%H:%MZ} {row['tenant']} {row['project']} {row['model']}"
    return f"{where}: cost {row['cost']}, at {row['price'] or 'no price'} {row['at_price']}"
