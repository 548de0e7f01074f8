"""The rollups of what was seeded, summed by a query of their own: `bench ledger` compares them with the drain's."""

from headrace_dev.bench.ledger.seeding.mix import TABLE

# A key has one project, and its model and target one price. No zone that is seeded moves its clocks by less than an
# hour, so that its hours begin at the same minute all year.
INSERT = f"""
INSERT INTO billing_usagehour (tenant, hour, project, key, model, target, kind, currency, price, requests, errors,
    cancelled, abandoned, estimated, unpriced, corrections, input_tokens, cached_input_tokens, output_tokens,
    reasoning_tokens, cost, cost_nano)
SELECT any_value(tenant), hour, any_value(project), key, model, target, 'chat', any_value(currency), any_value(price),
       count(*), count(*) FILTER (WHERE status IN ('error', 'incomplete')),
       count(*) FILTER (WHERE status = 'cancelled'), 0, 0, 0, 0,
       sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), 0, sum(cost), sum(cost_nano)
FROM (
    SELECT r.*, date_bin('1 hour', admitted_at, anchor) AS hour
    FROM billing_usagerecord AS r JOIN (
        SELECT DISTINCT tenant, '2026-01-01'::timestamp AT TIME ZONE time_zone AS anchor FROM {TABLE}
    ) AS z USING (tenant)
    WHERE admitted_at >= %(start)s AND admitted_at < %(end)s::timestamptz + interval '1 hour'
) AS placed
WHERE hour >= %(start)s AND hour < %(end)s
GROUP BY key, hour, model, target
ORDER BY hour, key, model, target
"""

# The hours that began before the first day, in zones whose hours do not begin with UTC's.
FIRST = INSERT.replace("WHERE hour >= %(start)s AND hour < %(end)s", "WHERE hour < %(start)s")
