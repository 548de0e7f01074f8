"""Usage by the tenant's local day, summed from the hours there are. Each tenant sees its own."""

from django.db import migrations, models

# The drain of a release before this one waits for the lock, and adds to no day: it ends before this release's begins.
FILL = """
LOCK TABLE billing_usagehour IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO billing_usageday (tenant, day, project, key, model, target, kind, currency, price, requests, errors,
    cancelled, abandoned, estimated, unpriced, corrections, input_tokens, cached_input_tokens, output_tokens,
    reasoning_tokens, cost, cost_nano)
SELECT h.tenant, date_trunc('day', hour, coalesce(z.time_zone, 'UTC')), project, key, model, target, kind, currency,
       price, sum(requests), sum(errors), sum(cancelled), sum(abandoned), sum(estimated), sum(unpriced),
       sum(corrections), sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(reasoning_tokens),
       sum(cost), sum(cost_nano)
FROM billing_usagehour AS h LEFT JOIN LATERAL (
    SELECT time_zone FROM billing_tenantzone AS known
    WHERE known.tenant = h.tenant AND known.since <= hour ORDER BY known.since DESC LIMIT 1
) AS z ON true
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
"""
GUARDS = "SELECT headrace_tenant_only('billing_usageday', 'tenant', 'SELECT');"


class Migration(migrations.Migration):
    dependencies = [("billing", "0016_moments")]

    operations = [
        migrations.CreateModel(
            name="UsageDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.TextField()),
                ("project", models.TextField()),
                ("key", models.TextField()),
                ("model", models.TextField()),
                ("target", models.TextField()),
                ("kind", models.TextField()),
                ("currency", models.CharField(max_length=3)),
                ("price", models.TextField(default="", help_text="The version of the price; empty: unpriced.")),
                ("requests", models.BigIntegerField()),
                ("errors", models.BigIntegerField(help_text="Status error, incomplete or reaped.")),
                ("cancelled", models.BigIntegerField()),
                ("abandoned", models.BigIntegerField()),
                ("estimated", models.BigIntegerField(help_text="Requests whose tokens the upstream did not report.")),
                (
                    "unpriced",
                    models.BigIntegerField(
                        help_text="Requests without a price; negative: so many were given one later."
                    ),
                ),
                ("corrections", models.BigIntegerField()),
                ("input_tokens", models.BigIntegerField()),
                ("cached_input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("reasoning_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=12, max_digits=24)),
                (
                    "cost_nano",
                    models.BigIntegerField(default=0, help_text="What budgets were charged, in units of 1e-9."),
                ),
                ("day", models.DateTimeField()),
            ],
            options={
                "verbose_name": "day",
                "ordering": ("-day", "tenant"),
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "day", "project", "key", "model", "target", "kind", "currency", "price"),
                        name="billing_usageday_bucket",
                    )
                ],
            },
        ),
        migrations.RunSQL([FILL, GUARDS], migrations.RunSQL.noop),
    ]
