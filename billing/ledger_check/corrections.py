"""Each correction has the record that it corrects, and takes no more from it than it has."""

import redis

from billing.ledger_check.check import MOST_SHOWN, Check, Outcome, rows
from billing.usage import PRICING

_LONELY = """
SELECT c.request_id, c.part, count(*) OVER () AS total FROM billing_usagerecord AS c
WHERE c.part > 0 AND NOT EXISTS (
    SELECT FROM billing_usagerecord AS r
    WHERE r.request_id = c.request_id AND r.part = 0 AND r.admitted_at = c.admitted_at)
ORDER BY 1, 2 LIMIT %s
"""
# What prices a row late repeats its tokens, and is no use of its own.
_OWING = f"""
SELECT r.request_id, count(*) OVER () AS total
FROM billing_usagerecord AS r JOIN billing_usagerecord AS c
     ON c.request_id = r.request_id AND c.admitted_at = r.admitted_at AND c.part > 0 AND c.kind <> '{PRICING}'
WHERE r.part = 0
GROUP BY r.request_id, r.admitted_at, r.input_tokens, r.cached_input_tokens, r.output_tokens, r.reasoning_tokens, r.cost
HAVING r.input_tokens + sum(c.input_tokens) < r.cached_input_tokens + sum(c.cached_input_tokens)
    OR r.output_tokens + sum(c.output_tokens) < r.reasoning_tokens + sum(c.reasoning_tokens)
    OR r.cached_input_tokens + sum(c.cached_input_tokens) < 0 OR r.reasoning_tokens + sum(c.reasoning_tokens) < 0
    OR r.cost + sum(c.cost) < 0
ORDER BY 1 LIMIT %s
"""


class Corrections(Check):
    name = "corrections"
    text = "each correction has its record, and with it adds up to no less than nothing"

    def run(self, client: "redis.Redis") -> Outcome:
        (counted,) = rows("SELECT count(*) AS compared FROM billing_usagerecord WHERE part > 0")
        lonely = rows(_LONELY, [MOST_SHOWN])
        told = [f"{row['request_id']}/{row['part']} corrects a record that is not there" for row in lonely]
        owing = rows(_OWING, [MOST_SHOWN])
        told += [f"{row['request_id']} and its corrections are less than nothing" for row in owing]
        return Outcome(counted["compared"], told, sum(found[0]["total"] for found in (lonely, owing) if found))
