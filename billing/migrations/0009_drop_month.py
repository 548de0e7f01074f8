"""The function that drops a month: its argument has the name of a column, which an ON CONFLICT cannot tell apart."""

from django.db import migrations

FUNCTION = """
-- Drop one month's records, UTC, and note it; how many rows went, NULL if there were none to drop. The hours stay.
CREATE OR REPLACE FUNCTION headrace_drop_usage_partition(month date) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    first date := date_trunc('month', month)::date;
    partition_name text := 'billing_usagerecord_' || to_char(first, 'YYYYMM');
    dropped bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.partitions'));
    IF to_regclass('public.' || partition_name) IS NULL THEN
        RETURN NULL;
    END IF;
    IF first > current_date - interval '2 months' THEN
        RAISE EXCEPTION 'the records of % are too young to be dropped', to_char(first, 'YYYY-MM')
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('LOCK TABLE public.%I IN SHARE MODE', partition_name);  -- no row comes in after the count
    EXECUTE format('SELECT count(*) FROM public.%I', partition_name) INTO dropped;
    INSERT INTO public.billing_droppedmonth (month, dropped_at, records) VALUES (first, now(), dropped)
        ON CONFLICT ON CONSTRAINT billing_droppedmonth_pkey
        DO UPDATE SET dropped_at = now(), records = billing_droppedmonth.records + excluded.records;
    EXECUTE format('DROP TABLE public.%I', partition_name);
    RETURN dropped;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0008_cost"),
    ]

    operations = [migrations.RunSQL(FUNCTION, migrations.RunSQL.noop)]
