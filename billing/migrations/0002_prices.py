"""Prices; and hours told apart by price, so that what they cost is exact arithmetic on their sums."""

from decimal import Decimal

import django.core.validators
import django.utils.timezone
from django.db import migrations, models

import headrace_core.currencies

GUARDS = """
SELECT headrace_watch('billing_price', 'id'), headrace_audited('billing_price', 'version', 'tenant'),
       headrace_fixed('billing_price', 'version');

-- A price whose time has come stands on records: it is only superseded.
CREATE TRIGGER billing_price_frozen BEFORE UPDATE OR DELETE ON billing_price FOR EACH ROW
    WHEN (OLD.effective_from <= now())
    EXECUTE FUNCTION headrace_refuse('a price in force is never changed: set a new one from a later moment on');

-- A tenant sees the prices for all and its own.
ALTER TABLE billing_price ENABLE ROW LEVEL SECURITY;
CREATE POLICY headrace_tenant ON billing_price TO headrace_app
    USING (tenant IN ('', nullif(current_setting('headrace.tenant', true), '')));
GRANT SELECT ON billing_price TO headrace_app;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0001_initial"),
        ("tenants", "0002_guards"),
    ]

    operations = [
        migrations.CreateModel(
            name="Price",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.CharField(blank=True, editable=False, max_length=220, unique=True)),
                ("model", models.CharField(help_text="The public name of the model.", max_length=200)),
                (
                    "target",
                    models.CharField(
                        blank=True, help_text="A pool or provider; empty: whichever serves.", max_length=63
                    ),
                ),
                (
                    "tenant",
                    models.CharField(blank=True, help_text="For one tenant alone; empty: for all.", max_length=63),
                ),
                (
                    "currency",
                    models.CharField(default="USD", max_length=3, validators=[headrace_core.currencies.check_currency]),
                ),
                (
                    "input",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="Per million uncached input tokens.",
                        max_digits=18,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0")),
                            django.core.validators.MaxValueValidator(Decimal("1000000000")),
                        ],
                    ),
                ),
                (
                    "cached_input",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="Per million input tokens found in the prefix cache.",
                        max_digits=18,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0")),
                            django.core.validators.MaxValueValidator(Decimal("1000000000")),
                        ],
                    ),
                ),
                (
                    "output",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="Per million output tokens.",
                        max_digits=18,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0")),
                            django.core.validators.MaxValueValidator(Decimal("1000000000")),
                        ],
                    ),
                ),
                (
                    "cache_hit",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per answer out of the response cache; empty: by its tokens.",
                        max_digits=18,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("0")),
                            django.core.validators.MaxValueValidator(Decimal("1000000000")),
                        ],
                    ),
                ),
                ("effective_from", models.DateTimeField(default=django.utils.timezone.now)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("model", "target", "tenant", "currency", "-effective_from"),
            },
        ),
        migrations.RemoveConstraint(
            model_name="usagehour",
            name="billing_usagehour_bucket",
        ),
        migrations.AddField(
            model_name="usagehour",
            name="cost_nano",
            field=models.BigIntegerField(default=0, help_text="What budgets were charged, in units of 1e-9."),
        ),
        migrations.AddField(
            model_name="usagehour",
            name="price",
            field=models.TextField(default="", help_text="The version of the price; empty: unpriced."),
        ),
        migrations.AddConstraint(
            model_name="usagehour",
            constraint=models.UniqueConstraint(
                fields=("tenant", "hour", "project", "key", "model", "target", "kind", "currency", "price"),
                name="billing_usagehour_bucket",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.UniqueConstraint(
                fields=("model", "target", "tenant", "currency", "effective_from"),
                name="billing_price_scope",
                violation_error_message="There is a price from this moment on already.",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("cached_input__gte", 0),
                    ("input__gte", 0),
                    ("output__gte", 0),
                    ("cached_input__lte", Decimal("1000000000")),
                    ("input__lte", Decimal("1000000000")),
                    ("output__lte", Decimal("1000000000")),
                    models.Q(
                        ("cache_hit__isnull", True),
                        models.Q(("cache_hit__gte", 0), ("cache_hit__lte", Decimal("1000000000"))),
                        _connector="OR",
                    ),
                ),
                name="billing_price_not_negative",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(("currency__regex", "^[A-Z]{3}$")), name="billing_price_currency"
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("model", ""), _negated=True), models.Q(("version", ""), _negated=True)),
                name="billing_price_named",
            ),
        ),
        migrations.RunSQL(GUARDS, "DROP TRIGGER billing_price_frozen ON billing_price"),
    ]
