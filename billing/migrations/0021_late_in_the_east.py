"""Late usage is noted also in the hours in which a month has begun east of UTC and not yet in UTC.

There an invoice finalised at once was followed by usage that no other took up.
"""

from django.db import migrations

LATE = """
CREATE OR REPLACE FUNCTION headrace_late_usage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    -- Nowhere on earth does a month begin 15 hours before it begins in UTC, or 15 hours after it.
    horizon timestamptz := %s + interval '15 hours';
BEGIN
    IF NOT EXISTS (SELECT 1 FROM written WHERE admitted_at < horizon) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext('headrace.invoices'), hashtext(late.tenant))
    FROM (SELECT w.tenant FROM written AS w WHERE w.admitted_at < horizon GROUP BY w.tenant
          HAVING min(w.admitted_at) < public.headrace_period_start(w.tenant, now()) ORDER BY w.tenant) AS late;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO public.billing_lateusage (request_id, part, admitted_at, tenant, arrived_at)
    SELECT DISTINCT w.request_id, w.part, w.admitted_at, w.tenant, now()
    FROM written AS w JOIN public.billing_invoice AS i ON i.tenant_id = w.tenant
         AND w.admitted_at >= i.period_start AND w.admitted_at < i.period_end
    WHERE i.status = 'finalised' AND i.kind = 'invoice'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0020_hours_of_a_target")]

    operations = [
        migrations.RunSQL(
            LATE % "date_trunc('month', now() + interval '15 hours', 'UTC')", LATE % "date_trunc('month', now(), 'UTC')"
        )
    ]
