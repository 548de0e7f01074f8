"""Each row's cost = its tokens at the rates of the price that was in force for it."""

from collections.abc import Mapping
from typing import Any

from billing.ledger_check.check import MonthlyCheck, Outcome, first_of, outcome_of, rows
from billing.ledger_check.right_prices import SCOPE, SPANS, in_force, right_prices
from billing.usage import PRICED_PARTS, PRICING, SHADOW
from tenants.meters.meter import MOST_NANO

# billing/pricing.py in SQL: numerics of at most twelve places, so nothing is rounded. What was priced later was taken
# from no budget once, and at a price that came after it where none held before (late_pricing.py). A copy that nobody
# asked for has no price and costs nothing.
_AT_PRICE = """(({row}.input_tokens - {row}.cached_input_tokens) * p.input
    + {row}.cached_input_tokens * p.cached_input + {row}.output_tokens * p.output) * 0.000001"""
_NANO = (
    f"CASE WHEN at_price IS NOT NULL THEN greatest(least(ceil(at_price * 1000000000), {MOST_NANO}), -{MOST_NANO}) END"
)
_RECORDS = "billing_usagerecord AS r WHERE r.admitted_at >= %(start)s AND r.admitted_at < %(end)s"
_LATER = f"""EXISTS (SELECT FROM {SPANS} AS later WHERE later.version = j.price AND later.begins > j.admitted_at
    AND {" AND ".join(f"later.{name} = j.{name}" for name in SCOPE)})"""
_PRICED_LATER = f"""EXISTS (SELECT FROM billing_usagerecord AS later WHERE later.request_id = j.request_id
    AND later.admitted_at = j.admitted_at AND later.part = j.part + {PRICED_PARTS} AND later.kind = '{PRICING}'
    AND later.admitted_at >= %(start)s AND later.admitted_at < %(end)s)"""
_SAID = f"""concat_ws('; ',
    CASE
    WHEN kind = '{SHADOW}' THEN CASE WHEN coalesce(price, '') <> '' THEN 'a shadow copy at price ' || price END
    WHEN price IS NOT DISTINCT FROM right_price THEN NULL
    WHEN price IS NULL THEN CASE WHEN (input_tokens, output_tokens) <> (0, 0) AND NOT {_PRICED_LATER}
        THEN 'it has no price, and ' || right_price || ' held' END
    WHEN kind = '{PRICING}' AND right_price IS NULL AND {_LATER} THEN NULL
    ELSE concat('its price ', price, CASE
        WHEN listed IS NULL THEN ' is on no list'
        WHEN p_model <> model THEN ' is of the model ' || p_model
        WHEN p_currency <> currency THEN ' is in ' || p_currency || ', the record in ' || currency
        WHEN p_tenant NOT IN ('', tenant) THEN ' is of the tenant ' || p_tenant
        WHEN p_target NOT IN ('', target) THEN ' is of the target ' || p_target
        WHEN p_begins > admitted_at THEN ' had not begun'
        WHEN right_price IS NOT NULL THEN ' was superseded' END,
        CASE WHEN right_price IS NULL THEN ', and none held' ELSE ', ' || right_price || ' held' END)
    END,
    CASE WHEN cost IS DISTINCT FROM at_price OR (cost_nano IS DISTINCT FROM {_NANO}
              AND NOT (kind = '{PRICING}' AND cost_nano = 0))
        THEN format('cost %%s (%%s nano), at %%s %%s', coalesce(cost::text, 'none'), coalesce(cost_nano::text, 'none'),
                    coalesce(price, 'no price'), coalesce(at_price::text, 'none')) END)"""
_ROWS = first_of(
    f"""
    SELECT * FROM (
        SELECT request_id, part, {_SAID} AS said FROM (
            SELECT r.request_id, r.part, r.admitted_at, r.kind, r.price, r.cost, r.cost_nano, r.model, r.target,
                   r.tenant, r.currency, r.input_tokens, r.output_tokens, s.version AS right_price,
                   p.version AS listed, p.model AS p_model, p.target AS p_target, p.tenant AS p_tenant,
                   p.currency AS p_currency, p.effective_from AS p_begins,
                   CASE WHEN r.kind = '{SHADOW}' THEN 0 ELSE {_AT_PRICE.format(row="r")} END AS at_price
            FROM (SELECT * FROM {_RECORDS}) AS r {in_force("r", "r.admitted_at")}
            LEFT JOIN billing_price AS p ON p.version = r.price
        ) AS j
    ) AS judged WHERE said <> ''""",
    "request_id, part",
    compared=f"SELECT count(*) FROM {_RECORDS}",
)
_MONTH = "billing_usagehour AS h WHERE h.hour >= %(start)s AND h.hour < %(end)s"
# An hour may hold records at two prices, each in a row of its own: a price is right that held at any time of it.
_HOURS = first_of(
    f"""
    SELECT h.tenant, h.hour, h.project, h.model, h.cost, h.price,
           CASE WHEN h.price = '' OR h.kind = '{SHADOW}' THEN 0 ELSE {_AT_PRICE.format(row="h")} END AS at_price,
           h.price = '' OR h.kind = '{PRICING}' OR s.version IS NOT NULL AS held
    FROM (SELECT * FROM {_MONTH}) AS h LEFT JOIN billing_price AS p ON p.version = h.price
    LEFT JOIN {SPANS} AS s ON s.version = h.price AND {" AND ".join(f"s.{name} = h.{name}" for name in SCOPE)}
         AND s.begins < h.hour + interval '2 hours' AND s.ends > h.hour
    WHERE h.cost IS DISTINCT FROM
            CASE WHEN h.price = '' OR h.kind = '{SHADOW}' THEN 0 ELSE {_AT_PRICE.format(row="h")} END
       OR (h.price <> '' AND h.kind <> '{PRICING}' AND s.version IS NULL)""",
    "tenant, hour",
    compared=f"SELECT count(*) FROM {_MONTH}",
)


class Costs(MonthlyCheck):
    name = "costs"
    text = "each record's cost = its tokens at the rates of its price, the one that was in force when it was admitted"

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        with right_prices("billing_usagerecord", "admitted_at", span):
            found = rows(_ROWS, span)
        return outcome_of(found, (f"{row['request_id']}/{row['part']}: {row['said']}" for row in found))


class HourCosts(MonthlyCheck):
    name = "hour_costs"
    text = "each hour's cost = its tokens at the rates of its price, whether or not its records are kept"
    needs_records = False

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        with right_prices("billing_usagehour", "hour", span):
            found = rows(_HOURS, span)
        return outcome_of(found, map(_hour, found))


def _hour(row: Mapping[str, Any]) -> str:
    where = f"{row['hour']:%Y-%m-%dT%H:%MZ} {row['tenant']} {row['project']} {row['model']}"
    if not row["held"]:
        return f"{where}: its price {row['price']} did not hold in that hour"
    return f"{where}: cost {row['cost']}, at {row['price'] or 'no price'} {row['at_price']}"
