"""Each correction has the record that it corrects."""

import redis

from billing.ledger_check.check import MOST_SHOWN, Check, Outcome, rows

_LONELY = """
SELECT c.request_id, c.part, count(*) OVER () AS total FROM billing_usagerecord AS c
WHERE c.part > 0 AND NOT EXISTS (
    SELECT FROM billing_usagerecord AS r
    WHERE r.request_id = c.request_id AND r.part = 0 AND r.admitted_at = c.admitted_at)
ORDER BY 1, 2 LIMIT %s
"""


class Corrections(Check):
    name = "corrections"
    text = "each correction has its record"

    def run(self, client: "redis.Redis") -> Outcome:
        (counted,) = rows("SELECT count(*) AS compared FROM billing_usagerecord WHERE part > 0")
        lonely = rows(_LONELY, [MOST_SHOWN])
        told = [f"{row['request_id']}/{row['part']} corrects a record that is not there" for row in lonely]
        return Outcome(counted["compared"], told, lonely[0]["total"] if lonely else 0)
