"""Each correction has the record that it corrects, of the same caller, and takes no more from it than it has."""

from collections.abc import Mapping
from typing import Any

from billing.ledger_check.check import MonthlyCheck, Outcome, first_of, outcome_of, rows
from billing.usage import PRICED_PARTS, PRICING

_MONTH = "admitted_at >= %(start)s AND admitted_at < %(end)s"
_RECORDS = f"(SELECT * FROM billing_usagerecord WHERE {_MONTH})"
_CORRECTIONS = f"(SELECT * FROM billing_usagerecord WHERE part > 0 AND {_MONTH})"
_CALLER = ("tenant", "project", "key", "model", "currency")
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
# What prices a row late repeats its tokens, and is no use of its own.
_ODD = f"""
SELECT c.request_id, c.part, CASE
    WHEN r.request_id IS NULL THEN 'corrects a record that is not there'
    WHEN ({", ".join(f"r.{name}" for name in _CALLER)}) IS DISTINCT FROM ({", ".join(f"c.{name}" for name in _CALLER)})
        THEN 'is of another ' || concat_ws(', ', {
    ", ".join(f"CASE WHEN r.{name} <> c.{name} THEN '{name}' END" for name in _CALLER)
}) || ' than its record'
    WHEN c.kind = '{PRICING}' AND p.request_id IS NULL THEN 'prices a row that is not there'
    WHEN p.price IS NOT NULL THEN 'prices a row that has the price ' || p.price
    WHEN p.request_id IS NOT NULL
         AND ({", ".join(f"p.{name}" for name in _TOKENS)}) <> ({", ".join(f"c.{name}" for name in _TOKENS)})
        THEN 'prices other tokens than its row has'
    END AS said
FROM {_CORRECTIONS} AS c
LEFT JOIN {_RECORDS} AS r ON r.request_id = c.request_id AND r.part = 0 AND r.admitted_at = c.admitted_at
LEFT JOIN {_RECORDS} AS p ON c.kind = '{PRICING}' AND p.request_id = c.request_id
     AND p.part = c.part - {PRICED_PARTS} AND p.admitted_at = c.admitted_at
"""
_OWING = f"""
SELECT r.request_id, 0 AS part, 'with its corrections is less than nothing' AS said
FROM billing_usagerecord AS r JOIN {_CORRECTIONS} AS c
     ON c.request_id = r.request_id AND c.admitted_at = r.admitted_at AND c.kind <> '{PRICING}'
WHERE r.part = 0 AND r.admitted_at >= %(start)s AND r.admitted_at < %(end)s
GROUP BY r.request_id, r.admitted_at, r.input_tokens, r.cached_input_tokens, r.output_tokens, r.reasoning_tokens, r.cost
HAVING r.input_tokens + sum(c.input_tokens) < r.cached_input_tokens + sum(c.cached_input_tokens)
    OR r.output_tokens + sum(c.output_tokens) < r.reasoning_tokens + sum(c.reasoning_tokens)
    OR r.cached_input_tokens + sum(c.cached_input_tokens) < 0 OR r.reasoning_tokens + sum(c.reasoning_tokens) < 0
    OR r.cost + sum(c.cost) < 0
"""
_FOUND = first_of(
    f"SELECT * FROM ({_ODD}) AS odd WHERE said IS NOT NULL UNION ALL {_OWING}",
    "request_id, part",
    compared=f"SELECT count(*) FROM {_CORRECTIONS} AS c",
)


class Corrections(MonthlyCheck):
    name = "corrections"
    text = "each correction has its record, of the same caller, and with it adds up to no less than nothing"

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        found = rows(_FOUND, span)
        return outcome_of(found, (f"{row['request_id']}/{row['part']} {row['said']}" for row in found))
