"""At a change of time zone the first hour of the new month is the new month's.

It was summed into an hour that began before the month where the new zone's hours begin between the old one's: so the
month before was invoiced with usage of the new one, or nobody was. No such hour has anything else in it, since the old
zone has none that begins then: so it is called by the month's beginning from now on, and days and targets are summed
again around it. Invoices stay as they are. What an issued one states too much or too little is an adjustment on the
next (invoicing/drafting.py); the records that an issued one left out are noted as late.
"""

from django.db import migrations

SUMS = [
    "requests",
    "errors",
    "cancelled",
    "abandoned",
    "estimated",
    "unpriced",
    "corrections",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "cost_nano",
]
GROUP = "project, key, model, target, kind, currency, price"
TARGET_SUMS = ("input_tokens", "cached_input_tokens", "output_tokens")
TOKENS = ", ".join(f"coalesce(sum({name}) FILTER (WHERE kind <> 'pricing'), 0)" for name in TARGET_SUMS)

MEND = f"""
LOCK TABLE billing_usagehour, billing_usageday, billing_targethour, billing_refusedhour IN SHARE ROW EXCLUSIVE MODE;

CREATE TEMPORARY TABLE zone_change ON COMMIT DROP AS
SELECT tenant, since, date_trunc('hour', since, time_zone) AS hour
FROM billing_tenantzone WHERE since > '1970-01-01Z';

CREATE TEMPORARY TABLE moved ON COMMIT DROP AS SELECT * FROM zone_change WHERE hour < since;

WITH gone AS (
    DELETE FROM billing_usagehour AS h USING moved AS m WHERE h.tenant = m.tenant AND h.hour = m.hour
    RETURNING h.*, m.since
)
INSERT INTO billing_usagehour (tenant, hour, {GROUP}, {", ".join(SUMS)})
SELECT tenant, since, {GROUP}, {", ".join(SUMS)} FROM gone
ON CONFLICT (tenant, hour, {GROUP}) DO UPDATE SET
    {", ".join(f"{name} = billing_usagehour.{name} + excluded.{name}" for name in SUMS)};

WITH gone AS (
    DELETE FROM billing_refusedhour AS h USING moved AS m WHERE h.tenant = m.tenant AND h.hour = m.hour
    RETURNING h.*, m.since
)
INSERT INTO billing_refusedhour (tenant, hour, project, key, code, requests)
SELECT tenant, since, project, key, code, requests FROM gone
ON CONFLICT (tenant, hour, project, key, code) DO UPDATE SET
    requests = billing_refusedhour.requests + excluded.requests;

DELETE FROM billing_usageday AS d USING zone_change AS c
WHERE d.tenant = c.tenant AND d.day >= c.since - interval '3 days' AND d.day < c.since + interval '3 days';
WITH near AS (
    SELECT h.*, c.since AS change, CASE WHEN (h.hour AT TIME ZONE coalesce(z.time_zone, 'UTC'))::date <= z.month
        THEN z.since ELSE greatest(date_trunc('day', h.hour, coalesce(z.time_zone, 'UTC')), z.since) END AS day
    FROM zone_change AS c
    JOIN billing_usagehour AS h ON h.tenant = c.tenant
        AND h.hour >= c.since - interval '75 hours' AND h.hour < c.since + interval '100 hours'
    LEFT JOIN LATERAL (
        SELECT month, since, time_zone FROM billing_tenantzone AS known
        WHERE known.tenant = h.tenant AND known.since <= h.hour ORDER BY known.since DESC LIMIT 1
    ) AS z ON true
)
INSERT INTO billing_usageday (tenant, day, {GROUP}, {", ".join(SUMS)})
SELECT tenant, day, {GROUP}, {", ".join(f"sum({name})" for name in SUMS)} FROM near
WHERE day >= change - interval '3 days' AND day < change + interval '3 days'
GROUP BY tenant, day, {GROUP};

CREATE TEMPORARY TABLE touched ON COMMIT DROP AS
SELECT DISTINCT date_trunc('hour', at, 'UTC') AS hour FROM moved, unnest(ARRAY[hour, since]) AS at;
DELETE FROM billing_targethour AS t USING touched WHERE t.hour = touched.hour;
INSERT INTO billing_targethour (hour, target, model, currency, {", ".join(TARGET_SUMS)}, cost)
SELECT touched.hour, target, model, currency, {TOKENS}, sum(cost)
FROM touched JOIN billing_usagehour AS h ON h.hour >= touched.hour AND h.hour < touched.hour + interval '1 hour'
GROUP BY 1, 2, 3, 4;

INSERT INTO billing_lateusage (request_id, part, admitted_at, tenant, arrived_at)
SELECT DISTINCT r.request_id, r.part, r.admitted_at, r.tenant, now()
FROM moved AS m
JOIN billing_usagerecord AS r ON r.tenant = m.tenant
    AND r.admitted_at >= m.since AND r.admitted_at < m.hour + interval '1 hour'
JOIN billing_invoice AS i ON i.tenant_id = r.tenant AND i.status = 'finalised' AND i.kind = 'invoice'
    AND r.admitted_at >= i.period_start AND r.admitted_at < i.period_end
ON CONFLICT DO NOTHING;

DROP TABLE zone_change, moved, touched;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0023_known_zones")]

    operations = [migrations.RunSQL(MEND, migrations.RunSQL.noop)]
