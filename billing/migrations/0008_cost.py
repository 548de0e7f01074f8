"""Exchange rates, and the hours of targets, summed from what the ledger's hours have."""

from decimal import Decimal

import django.core.validators
from django.db import migrations, models

import headrace_core.currencies

FILL = """
INSERT INTO billing_targethour (hour, target, model, currency, input_tokens, cached_input_tokens, output_tokens, cost)
SELECT date_trunc('hour', hour, 'UTC'), target, model, currency,
       sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(cost)
FROM billing_usagehour GROUP BY 1, 2, 3, 4;
"""
GUARDS = "SELECT headrace_audited('billing_exchangerate', 'base,quote,day');"


class Migration(migrations.Migration):
    dependencies = [("billing", "0007_budget_names"), ("tenants", "0002_guards")]

    operations = [
        migrations.CreateModel(
            name="ExchangeRate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("base", models.CharField(max_length=3, validators=[headrace_core.currencies.check_currency])),
                ("quote", models.CharField(max_length=3, validators=[headrace_core.currencies.check_currency])),
                (
                    "rate",
                    models.DecimalField(
                        decimal_places=12,
                        max_digits=24,
                        validators=[django.core.validators.MinValueValidator(Decimal("1E-12"))],
                    ),
                ),
                ("day", models.DateField(verbose_name="from")),
            ],
            options={
                "ordering": ("base", "quote", "-day"),
                "constraints": [
                    models.UniqueConstraint(fields=("base", "quote", "day"), name="billing_exchangerate_day"),
                    models.CheckConstraint(condition=models.Q(("rate__gt", 0)), name="billing_exchangerate_positive"),
                    models.CheckConstraint(
                        condition=models.Q(("base", models.F("quote")), _negated=True), name="billing_exchangerate_two"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TargetHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("target", models.TextField()),
                ("model", models.TextField()),
                ("hour", models.DateTimeField()),
                ("currency", models.CharField(max_length=3)),
                ("input_tokens", models.BigIntegerField()),
                ("cached_input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=12, max_digits=30)),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "target", "model", "currency"), name="billing_targethour_bucket"
                    )
                ],
            },
        ),
        migrations.RunSQL([FILL, GUARDS], migrations.RunSQL.noop),
    ]
