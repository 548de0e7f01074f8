"""Limits for one model, and what cached input counts in tokens a minute."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

GUARDS = """
SELECT headrace_watch('tenants_modellimits', 'id'),
       headrace_audited('tenants_modellimits', 'tenant_id,project,key,model', 'tenant_id'),
       headrace_tenant_only('tenants_modellimits', 'tenant_id', 'SELECT');
SELECT headrace_fixed('tenants_modellimits', name)
FROM unnest(ARRAY['tenant_id', 'project', 'key', 'model']) AS name;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_weight"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelLimits",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "requests_per_minute",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Requests admitted a minute.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
                        ],
                    ),
                ),
                (
                    "input_tokens_per_minute",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Prompt tokens admitted a minute.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
                        ],
                    ),
                ),
                (
                    "output_tokens_per_minute",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Generated tokens a minute; admission counts the most a request may generate.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
                        ],
                    ),
                ),
                (
                    "concurrency",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Requests running at once.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
                        ],
                    ),
                ),
                (
                    "max_prompt_tokens",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Largest prompt of one request, in tokens.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
                        ],
                    ),
                ),
                (
                    "max_output_tokens",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Largest output one request may ask for, in tokens.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000000000),
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
                ("model", models.CharField(help_text="A model's public name.", max_length=200)),
            ],
            options={
                "verbose_name": "limits per model",
                "verbose_name_plural": "limits per model",
                "ordering": ("tenant", "project", "key", "model"),
                "abstract": False,
            },
        ),
        migrations.AddField(
            model_name="tenant",
            name="cached_input_weight",
            field=models.FloatField(
                default=1,
                help_text="How much of a cached input token counts in input tokens a minute, once it is known to be cached.",
                validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)],
            ),
        ),
        migrations.AddConstraint(
            model_name="tenant",
            constraint=models.CheckConstraint(
                condition=models.Q(("cached_input_weight__gte", 0), ("cached_input_weight__lte", 1)),
                name="tenants_tenant_cached_weight",
            ),
        ),
        migrations.AddField(
            model_name="modellimits",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="model_limits", to="tenants.tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="modellimits",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("requests_per_minute__isnull", True),
                        models.Q(("requests_per_minute__gte", 1), ("requests_per_minute__lte", 100000000000)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("input_tokens_per_minute__isnull", True),
                        models.Q(("input_tokens_per_minute__gte", 1), ("input_tokens_per_minute__lte", 100000000000)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("output_tokens_per_minute__isnull", True),
                        models.Q(("output_tokens_per_minute__gte", 1), ("output_tokens_per_minute__lte", 100000000000)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("concurrency__isnull", True),
                        models.Q(("concurrency__gte", 1), ("concurrency__lte", 100000000000)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("max_prompt_tokens__isnull", True),
                        models.Q(("max_prompt_tokens__gte", 1), ("max_prompt_tokens__lte", 100000000000)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("max_output_tokens__isnull", True),
                        models.Q(("max_output_tokens__gte", 1), ("max_output_tokens__lte", 100000000000)),
                        _connector="OR",
                    ),
                ),
                name="tenants_modellimits_limits",
                violation_error_message="A limit is a whole number from 1 to 100000000000.",
            ),
        ),
        migrations.AddConstraint(
            model_name="modellimits",
            constraint=models.UniqueConstraint(
                fields=("tenant", "project", "key", "model"), name="tenants_modellimits_scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="modellimits",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("model", ""), _negated=True), models.Q(("project", ""), ("key", ""), _connector="OR")
                ),
                name="tenants_modellimits_one",
            ),
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
