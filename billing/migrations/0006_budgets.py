"""Budgets with their adjustments and alerts, and where alerts are sent."""

from decimal import Decimal

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import billing.models.budget

GUARDS = """
ALTER TABLE billing_budget ADD CONSTRAINT billing_budget_thresholds CHECK (
    array_position(thresholds, NULL) IS NULL AND cardinality(thresholds) <= 10
    AND 0 < ALL (thresholds) AND 1000 >= ALL (thresholds));

SELECT headrace_watch('billing_budget', 'id');
SELECT headrace_audited('billing_budget', 'tenant_id,name', 'tenant_id'),
       headrace_audited('billing_budgetadjustment', 'budget_id,id', 'tenant_id'),
       headrace_audited('billing_webhookendpoint', 'tenant_id,url', 'tenant_id', 'secret');

-- What a counter counts never changes; another budget has another name.
SELECT headrace_fixed('billing_budget', name)
FROM unnest(ARRAY['tenant_id', 'name', 'project', 'key', 'model', 'period']) AS name;

SELECT headrace_tenant_only('billing_budget', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_budgetadjustment', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_budgetalert', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_webhookendpoint', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_notice', 'tenant_id', 'SELECT');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0005_invoice_guards"),
        ("tenants", "0002_guards"),
    ]

    operations = [
        migrations.CreateModel(
            name="Budget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=63,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9._-]{0,62}\\Z",
                                "A name is 1 to 63 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit.",
                            )
                        ],
                    ),
                ),
                (
                    "project",
                    models.CharField(
                        blank=True, help_text="A project's name; empty: all of the tenant.", max_length=63
                    ),
                ),
                ("key", models.CharField(blank=True, help_text="A key's public id; empty: all.", max_length=12)),
                ("model", models.CharField(blank=True, help_text="A model's public name; empty: all.", max_length=200)),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=9,
                        help_text="In the tenant's currency.",
                        max_digits=19,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("1E-9")),
                            django.core.validators.MaxValueValidator(Decimal("4000000000")),
                        ],
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[("day", "Day"), ("week", "Week"), ("month", "Month"), ("total", "Total")],
                        default="month",
                        max_length=5,
                    ),
                ),
                (
                    "hard",
                    models.BooleanField(default=True, help_text="Refuse what might pass it. A soft budget only tells."),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "thresholds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(1000),
                            ]
                        ),
                        blank=True,
                        default=billing.models.budget.usual_thresholds,
                        help_text="Percents of the amount, parted by commas, at which people are told, once a period.",
                        size=10,
                    ),
                ),
                (
                    "extra",
                    models.DecimalField(
                        blank=True,
                        decimal_places=9,
                        help_text="A temporary increase, on top of the amount.",
                        max_digits=19,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(Decimal("1E-9")),
                            django.core.validators.MaxValueValidator(Decimal("4000000000")),
                        ],
                    ),
                ),
                ("extra_until", models.DateTimeField(blank=True, help_text="When the increase ends.", null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="budgets", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("tenant", "name"),
            },
        ),
        migrations.CreateModel(
            name="BudgetAdjustment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("window_start", models.DateTimeField()),
                ("nano", models.BigIntegerField(help_text="In units of 1e-9, signed.")),
                ("reason", models.TextField()),
                ("who", models.TextField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="adjustments", to="billing.budget"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="BudgetAlert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("window_start", models.DateTimeField()),
                ("threshold", models.IntegerField(help_text="Percent.")),
                ("spent", models.DecimalField(decimal_places=9, max_digits=28)),
                ("amount", models.DecimalField(decimal_places=9, max_digits=28)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="alerts", to="billing.budget"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "url",
                    models.CharField(
                        max_length=500, validators=[django.core.validators.URLValidator(schemes=["https", "http"])]
                    ),
                ),
                ("secret", models.BinaryField()),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="webhooks", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook",
                "ordering": ("tenant", "id"),
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("email", models.CharField(blank=True, max_length=254)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("next_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_at", models.DateTimeField(blank=True, null=True)),
                ("answer", models.TextField(blank=True, help_text="What the last try came to.")),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notices", to="billing.budgetalert"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="billing.webhookendpoint",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("name__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="billing_budget_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="billing_budget_tenant_name"),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gt", 0), ("amount__lte", Decimal("4000000000"))),
                name="billing_budget_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("extra__isnull", True), ("extra_until__isnull", True)),
                    models.Q(("extra__gt", 0), ("extra__lte", Decimal("4000000000")), ("extra_until__isnull", False)),
                    _connector="OR",
                ),
                name="billing_budget_extra",
                violation_error_message="An increase wants an amount and an end.",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("period__in", ["day", "week", "month", "total"])), name="billing_budget_period"
            ),
        ),
        migrations.AddConstraint(
            model_name="budgetalert",
            constraint=models.UniqueConstraint(
                fields=("budget", "window_start", "threshold"), name="billing_budgetalert_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.UniqueConstraint(fields=("tenant", "url"), name="billing_webhookendpoint_tenant_url"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["next_at"], name="billing_notice_waiting"
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=("alert", "endpoint", "email"), name="billing_notice_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("email", ""), ("endpoint__isnull", False)),
                    models.Q(("endpoint__isnull", True), models.Q(("email", ""), _negated=True)),
                    _connector="OR",
                ),
                name="billing_notice_place",
            ),
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
