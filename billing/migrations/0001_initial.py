"""The ledger. UsageRecord is made in SQL, as Django makes no partitioned tables; UsageCorrection is a view on it."""

import django.db.models.functions.datetime
from django.db import migrations, models

LEDGER = """
CREATE TABLE billing_usagerecord (
    request_id uuid NOT NULL,
    part smallint NOT NULL DEFAULT 0,
    admitted_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    tenant text NOT NULL,
    project text NOT NULL,
    key text NOT NULL,
    model text NOT NULL,
    target text NOT NULL,
    replica text NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    finish_reason text,
    input_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    usage_source text NOT NULL,
    cost numeric(24, 12),
    cost_nano bigint,
    currency varchar(3) NOT NULL,
    price text,
    queue_ms double precision NOT NULL,
    ttft_ms double precision,
    tpot_ms double precision,
    fallback smallint NOT NULL,
    cache text NOT NULL,
    labels jsonb NOT NULL,
    upstream_id text,
    PRIMARY KEY (request_id, part, admitted_at),
    CONSTRAINT billing_usagerecord_part CHECK (part >= 0),
    CONSTRAINT billing_usagerecord_times CHECK (finished_at >= admitted_at),
    CONSTRAINT billing_usagerecord_tokens CHECK (
        input_tokens >= 0 AND output_tokens >= 0 AND cached_input_tokens >= 0 AND reasoning_tokens >= 0),
    CONSTRAINT billing_usagerecord_subsets CHECK (
        part > 0 OR (cached_input_tokens <= input_tokens AND reasoning_tokens <= output_tokens)),
    CONSTRAINT billing_usagerecord_cost CHECK (cost >= 0 AND cost_nano >= 0),
    CONSTRAINT billing_usagerecord_nano CHECK (
        part > 0 OR cost_nano IS NOT DISTINCT FROM ceil(cost * 1000000000)),
    CONSTRAINT billing_usagerecord_currency CHECK (currency ~ '^[A-Z]{3}$')
) PARTITION BY RANGE (admitted_at);

CREATE INDEX billing_usagerecord_time ON billing_usagerecord (admitted_at, request_id);
CREATE INDEX billing_usagerecord_tenant ON billing_usagerecord (tenant, admitted_at, request_id);

CREATE VIEW billing_usagecorrection WITH (security_invoker = true) AS
    SELECT request_id || '/' || part AS id, billing_usagerecord.* FROM billing_usagerecord WHERE part > 0;

-- One month's partition of the ledger, UTC; false if it was there. ATTACH, unlike PARTITION OF, lets the drain go on.
CREATE FUNCTION headrace_usage_partition(month date) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    first date := date_trunc('month', month)::date;
    partition_name text := 'billing_usagerecord_' || to_char(first, 'YYYYMM');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.partitions'));
    IF to_regclass('public.' || partition_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE public.%I (LIKE public.billing_usagerecord INCLUDING ALL EXCLUDING INDEXES)',
                   partition_name);
    EXECUTE format('ALTER TABLE public.billing_usagerecord ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                   partition_name, first::timestamp AT TIME ZONE 'UTC',
                   (first + interval '1 month')::timestamp AT TIME ZONE 'UTC');
    RETURN true;
END $$;
REVOKE ALL ON FUNCTION headrace_usage_partition(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION headrace_usage_partition(date) TO headrace_system;

SELECT headrace_append_only('billing_usagerecord');
SELECT headrace_usage_partition((current_date + make_interval(months => n))::date) FROM generate_series(-1, 2) AS n;
"""

DROP_LEDGER = """
DROP FUNCTION headrace_usage_partition(date);
DROP VIEW billing_usagecorrection;
DROP TABLE billing_usagerecord;
"""

GUARDS = """
SELECT headrace_tenant_only('billing_usagerecord', 'tenant', 'SELECT'),
       headrace_tenant_only('billing_usagehour', 'tenant', 'SELECT');
GRANT SELECT ON billing_usagecorrection TO headrace_app;
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("headrace", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="UsageCorrection",
            fields=[
                ("part", models.SmallIntegerField(default=0)),
                ("tenant", models.TextField()),
                ("project", models.TextField()),
                ("key", models.TextField(help_text="The public id of the API key.")),
                ("model", models.TextField()),
                ("target", models.TextField()),
                ("replica", models.TextField()),
                ("kind", models.TextField()),
                (
                    "status",
                    models.TextField(
                        choices=[
                            ("ok", "Ok"),
                            ("cancelled", "Cancelled"),
                            ("error", "Error"),
                            ("incomplete", "Incomplete"),
                            ("abandoned", "Abandoned"),
                            ("reaped", "Reaped"),
                        ]
                    ),
                ),
                ("finish_reason", models.TextField(null=True)),
                ("input_tokens", models.BigIntegerField()),
                ("cached_input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("reasoning_tokens", models.BigIntegerField()),
                (
                    "usage_source",
                    models.TextField(
                        choices=[("reported", "Reported"), ("counted", "Counted"), ("estimated", "Estimated")]
                    ),
                ),
                ("cost", models.DecimalField(decimal_places=12, max_digits=24, null=True)),
                ("cost_nano", models.BigIntegerField(null=True)),
                ("currency", models.CharField(max_length=3)),
                ("price", models.TextField(null=True)),
                ("admitted_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField()),
                ("queue_ms", models.FloatField()),
                ("ttft_ms", models.FloatField(null=True)),
                ("tpot_ms", models.FloatField(null=True)),
                ("fallback", models.SmallIntegerField()),
                ("cache", models.TextField()),
                ("labels", models.JSONField(default=dict)),
                ("upstream_id", models.TextField(null=True)),
                ("id", models.TextField(primary_key=True, serialize=False)),
                ("request_id", models.UUIDField()),
            ],
            options={
                "verbose_name": "correction",
                "db_table": "billing_usagecorrection",
                "ordering": ("-admitted_at", "-request_id", "-part"),
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("entry", models.TextField(unique=True)),
                ("event", models.TextField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("replayed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("-id",),
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.CreateModel(
            name="UsageHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.TextField()),
                ("hour", models.DateTimeField()),
                ("project", models.TextField()),
                ("key", models.TextField()),
                ("model", models.TextField()),
                ("target", models.TextField()),
                ("kind", models.TextField()),
                ("currency", models.CharField(max_length=3)),
                ("requests", models.BigIntegerField()),
                ("errors", models.BigIntegerField(help_text="Status error, incomplete or reaped.")),
                ("cancelled", models.BigIntegerField()),
                ("abandoned", models.BigIntegerField()),
                ("estimated", models.BigIntegerField(help_text="Requests whose tokens the upstream did not report.")),
                ("unpriced", models.BigIntegerField()),
                ("corrections", models.BigIntegerField()),
                ("input_tokens", models.BigIntegerField()),
                ("cached_input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("reasoning_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=12, max_digits=24)),
            ],
            options={
                "verbose_name": "hour",
                "ordering": ("-hour", "tenant"),
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["-hour"], name="billing_usagehour_hour")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "hour", "project", "key", "model", "target", "kind", "currency"),
                        name="billing_usagehour_bucket",
                    )
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(LEDGER, DROP_LEDGER)],
            state_operations=[
                migrations.CreateModel(
                    name="UsageRecord",
                    fields=[
                        ("part", models.SmallIntegerField(default=0)),
                        ("tenant", models.TextField()),
                        ("project", models.TextField()),
                        ("key", models.TextField(help_text="The public id of the API key.")),
                        ("model", models.TextField()),
                        ("target", models.TextField()),
                        ("replica", models.TextField()),
                        ("kind", models.TextField()),
                        (
                            "status",
                            models.TextField(
                                choices=[
                                    ("ok", "Ok"),
                                    ("cancelled", "Cancelled"),
                                    ("error", "Error"),
                                    ("incomplete", "Incomplete"),
                                    ("abandoned", "Abandoned"),
                                    ("reaped", "Reaped"),
                                ]
                            ),
                        ),
                        ("finish_reason", models.TextField(null=True)),
                        ("input_tokens", models.BigIntegerField()),
                        ("cached_input_tokens", models.BigIntegerField()),
                        ("output_tokens", models.BigIntegerField()),
                        ("reasoning_tokens", models.BigIntegerField()),
                        (
                            "usage_source",
                            models.TextField(
                                choices=[("reported", "Reported"), ("counted", "Counted"), ("estimated", "Estimated")]
                            ),
                        ),
                        ("cost", models.DecimalField(decimal_places=12, max_digits=24, null=True)),
                        ("cost_nano", models.BigIntegerField(null=True)),
                        ("currency", models.CharField(max_length=3)),
                        ("price", models.TextField(null=True)),
                        ("admitted_at", models.DateTimeField()),
                        ("finished_at", models.DateTimeField()),
                        ("queue_ms", models.FloatField()),
                        ("ttft_ms", models.FloatField(null=True)),
                        ("tpot_ms", models.FloatField(null=True)),
                        ("fallback", models.SmallIntegerField()),
                        ("cache", models.TextField()),
                        ("labels", models.JSONField(default=dict)),
                        ("upstream_id", models.TextField(null=True)),
                        ("request_id", models.UUIDField(primary_key=True, serialize=False)),
                    ],
                    options={
                        "verbose_name": "record",
                        "db_table": "billing_usagerecord",
                        "ordering": ("-admitted_at", "-request_id"),
                        "default_permissions": ("view",),
                    },
                ),
            ],
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
