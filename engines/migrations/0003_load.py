"""Samples of the fleet, in daily partitions that the database makes and drops, and their hours."""

import django.core.validators
from django.db import migrations, models

SAMPLES = """
CREATE TABLE engines_replicasample (
    at timestamptz NOT NULL,
    pool text NOT NULL,
    replica text NOT NULL,
    up boolean NOT NULL,
    state text NOT NULL,
    hour_cost numeric(30, 10) NOT NULL,
    currency varchar(3) NOT NULL,
    running integer,
    waiting integer,
    waiting_tokens bigint,
    kv_used double precision,
    prefix_hit_rate double precision,
    retractions bigint,
    output_tokens_per_second double precision,
    PRIMARY KEY (replica, at),
    CONSTRAINT engines_replicasample_currency CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT engines_replicasample_cost CHECK (hour_cost >= 0)
) PARTITION BY RANGE (at);

-- One day's partition, UTC; false if it was there.
CREATE FUNCTION headrace_sample_partition(day date) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    partition_name text := 'engines_replicasample_' || to_char(day, 'YYYYMMDD');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.sample_partitions'));
    IF to_regclass('public.' || partition_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.engines_replicasample INCLUDING ALL EXCLUDING INDEXES)',
                   partition_name);
    EXECUTE format('ALTER TABLE public.engines_replicasample ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                   partition_name, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
    RETURN true;
END $$;

-- Drop the partitions of days before `first`, which is at least a week ago; how many.
CREATE FUNCTION headrace_sample_drop(first date) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    partition_name text;
    dropped integer := 0;
BEGIN
    IF first > (now() AT TIME ZONE 'UTC')::date - 7 THEN
        RAISE EXCEPTION 'samples are kept for a week at least' USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('headrace.sample_partitions'));
    FOR partition_name IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.engines_replicasample'::regclass
              AND to_date(right(c.relname, 8), 'YYYYMMDD') < first
    LOOP
        EXECUTE format('DROP TABLE public.%I', partition_name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE ALL ON FUNCTION headrace_sample_partition(date), headrace_sample_drop(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace_sample_partition(date), headrace_sample_drop(date) TO headrace_system;

SELECT headrace_sample_partition(current_date + n) FROM generate_series(-1, 2) AS n;
"""

DROP_SAMPLES = """
DROP FUNCTION headrace_sample_drop(date), headrace_sample_partition(date);
DROP TABLE engines_replicasample;
"""


class Migration(migrations.Migration):
    dependencies = [("engines", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="pool",
            name="cost_currency",
            field=models.CharField(
                default="USD",
                help_text="Three letters: USD.",
                max_length=3,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[A-Z]{3}\\Z", "A currency is three capital letters, such as USD."
                    )
                ],
                verbose_name="its currency",
            ),
        ),
        migrations.AddField(
            model_name="pool",
            name="orders_by_priority",
            field=models.BooleanField(
                default=False,
                help_text="Its engines were started to take a priority with each request (--enable-priority-scheduling).",
            ),
        ),
        migrations.AddConstraint(
            model_name="pool",
            constraint=models.CheckConstraint(
                condition=models.Q(("cost_currency__regex", "^[A-Z]{3}$")), name="engines_pool_cost_currency"
            ),
        ),
        migrations.CreateModel(
            name="PoolHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pool", models.TextField()),
                ("hour", models.DateTimeField()),
                ("currency", models.CharField(max_length=3)),
                ("cost", models.DecimalField(decimal_places=12, max_digits=30)),
                ("up_seconds", models.FloatField()),
                ("covered_seconds", models.FloatField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("pool", "hour", "currency"), name="engines_poolhour_bucket")
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(SAMPLES, DROP_SAMPLES)],
            state_operations=[
                migrations.CreateModel(
                    name="ReplicaSample",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "replica", "at", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("pool", models.TextField()),
                        ("replica", models.TextField()),
                        ("up", models.BooleanField()),
                        ("state", models.TextField()),
                        ("hour_cost", models.DecimalField(decimal_places=10, max_digits=30)),
                        ("currency", models.CharField(max_length=3)),
                        ("running", models.IntegerField(null=True)),
                        ("waiting", models.IntegerField(null=True)),
                        ("waiting_tokens", models.BigIntegerField(null=True)),
                        ("kv_used", models.FloatField(null=True)),
                        ("prefix_hit_rate", models.FloatField(null=True)),
                        ("retractions", models.BigIntegerField(null=True)),
                        ("output_tokens_per_second", models.FloatField(null=True)),
                    ],
                    options={"db_table": "engines_replicasample", "default_permissions": ("view",)},
                ),
            ],
        ),
    ]
