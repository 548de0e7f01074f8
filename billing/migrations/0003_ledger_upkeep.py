"""What became of the ledger: months whose records were dropped, and what its nightly checks found."""

import django.utils.timezone
from django.db import migrations, models

RETENTION = """
-- How many rows all tenants had is none of theirs.
GRANT SELECT (month, dropped_at) ON billing_droppedmonth TO headrace_app;

-- Drop one month's records, UTC, and note it; how many rows went, NULL if there were none to drop. The hours stay.
CREATE FUNCTION headrace_drop_usage_partition(month date) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
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
        ON CONFLICT (month) DO UPDATE SET dropped_at = now(), records = billing_droppedmonth.records + excluded.records;
    EXECUTE format('DROP TABLE public.%I', partition_name);
    RETURN dropped;
END $$;
REVOKE ALL ON FUNCTION headrace_drop_usage_partition(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace_drop_usage_partition(date) TO headrace_system;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0002_prices"),
    ]

    operations = [
        migrations.CreateModel(
            name="DroppedMonth",
            fields=[
                ("month", models.DateField(primary_key=True, serialize=False)),
                ("dropped_at", models.DateTimeField()),
                ("records", models.BigIntegerField(help_text="How many rows went.")),
            ],
            options={"ordering": ("-month",), "default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            name="LedgerCheckRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("differences", models.BigIntegerField()),
                ("report", models.JSONField()),
            ],
            options={"verbose_name": "check", "ordering": ("-at",), "default_permissions": ("view",)},
        ),
        migrations.RunSQL(RETENTION, "DROP FUNCTION headrace_drop_usage_partition(date)"),
    ]
