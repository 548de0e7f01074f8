"""Each record by itself: whose it is, what served it, when, and how much can be true of it."""

from collections.abc import Mapping
from typing import Any

from billing.ledger_check.check import MonthlyCheck, Outcome, first_of, outcome_of, rows
from billing.models import Status, UsageSource
from billing.usage import KINDS, PRICED_PARTS, PRICING

_RECORDS = "(SELECT * FROM billing_usagerecord WHERE admitted_at >= %(start)s AND admitted_at < %(end)s)"
# A target may be gone by now; the feed of changes knows every one there was.
_TARGETS = f"""
SELECT u.target, EXISTS (SELECT FROM engines_pool AS p WHERE p.name = u.target)
       OR EXISTS (SELECT FROM engines_provider AS p WHERE p.name = u.target)
       OR EXISTS (SELECT FROM config_change AS c
                  WHERE c.table_name IN ('engines_pool', 'engines_provider') AND c.ref = u.target) AS is_known
FROM (SELECT DISTINCT target FROM {_RECORDS} AS r WHERE target <> '') AS u
"""
# The millisecond inside the id (UUIDv7), by which a row stands in its partition.
_ID_MS = "('x0000' || left(translate(r.request_id::text, '-', ''), 12))::bit(64)::bigint"
_MS = "(extract(epoch FROM r.admitted_at) * 1000)"


def _is_none_of(name: str, known: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{value}'" for value in known)
    return f"CASE WHEN r.{name} NOT IN ({listed}) THEN '{name} ' || r.{name} || ' is unknown' END"


_SAID = f"""concat_ws('; ',
    CASE WHEN t.slug IS NULL THEN 'there is no tenant ' || r.tenant
         WHEN t.currency <> r.currency THEN 'it is in ' || r.currency || ', its tenant in ' || t.currency END,
    CASE WHEN j.slug IS NULL THEN 'tenant ' || r.tenant || ' has no project ' || r.project END,
    CASE WHEN k.public_id IS NULL THEN 'there is no key ' || r.key
         WHEN k.tenant_id <> r.tenant THEN 'key ' || r.key || ' is of the tenant ' || k.tenant_id
         WHEN k.project_id <> j.id THEN 'key ' || r.key || ' is of another project' END,
    CASE WHEN NOT g.is_known THEN 'there never was a target ' || r.target END,
    {_is_none_of("kind", KINDS)}, {_is_none_of("status", tuple(Status.values))},
    {_is_none_of("usage_source", tuple(UsageSource.values))},
    CASE WHEN (r.kind = '{PRICING}') <> (r.part >= {PRICED_PARTS}) THEN 'part ' || r.part || ' of kind ' || r.kind END,
    CASE WHEN r.part < 0 THEN 'part ' || r.part || ' is negative' END,
    CASE WHEN {_MS} <> {_ID_MS} THEN 'it is not of the millisecond inside its id' END,
    CASE WHEN r.finished_at < r.admitted_at THEN 'it was finished before it was admitted' END,
    CASE WHEN r.part = 0 AND least(r.input_tokens, r.cached_input_tokens, r.output_tokens, r.reasoning_tokens) < 0
        THEN 'it has less than no tokens' END,
    CASE WHEN r.part = 0 AND r.cached_input_tokens > r.input_tokens THEN 'it has more cached input than input' END,
    CASE WHEN r.part = 0 AND r.reasoning_tokens > r.output_tokens THEN 'it has more reasoning than output' END)"""
_FOUND = f"""
SELECT * FROM (
    SELECT r.request_id, r.part, {_SAID} AS said FROM {_RECORDS} AS r
    LEFT JOIN tenants_tenant AS t ON t.slug = r.tenant
    LEFT JOIN tenants_project AS j ON j.tenant_id = r.tenant AND j.slug = r.project
    LEFT JOIN tenants_apikey AS k ON k.public_id = r.key
    LEFT JOIN targets AS g ON g.target = r.target
) AS judged WHERE said <> ''
"""
# The ledger's key forbids it, as long as its index is whole; an id is of one moment, so of one month.
_TWICE = f"""
SELECT request_id, part, 'it is there ' || count(*) || ' times' AS said
FROM {_RECORDS} AS r GROUP BY request_id, part HAVING count(*) > 1
"""
_ROWS = first_of(
    f"{_FOUND} UNION ALL {_TWICE}",
    "request_id, part",
    compared=f"SELECT count(*) FROM {_RECORDS} AS r",
    given=f"targets AS MATERIALIZED ({_TARGETS})",
)


class Records(MonthlyCheck):
    name = "records"
    text = "each record is of a known tenant, project, key and target, of the moment in its id, and there once"

    def of_month(self, span: Mapping[str, Any]) -> Outcome:
        found = rows(_ROWS, span)
        return outcome_of(found, (f"{row['request_id']}/{row['part']}: {row['said']}" for row in found))
