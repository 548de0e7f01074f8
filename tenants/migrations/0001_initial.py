import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import headrace_core.currencies
import headrace_core.time_zones


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("headrace", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("who", models.TextField()),
                ("origin", models.TextField(help_text="Where from: an address, or the command.")),
                ("tenant", models.TextField(blank=True)),
                (
                    "action",
                    models.CharField(
                        choices=[("created", "Created"), ("changed", "Changed"), ("deleted", "Deleted")], max_length=8
                    ),
                ),
                ("subject", models.TextField(help_text="Table and name of the changed row.")),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
            ],
            options={
                "verbose_name_plural": "audit trail",
                "ordering": ("-id",),
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["tenant", "-id"], name="tenants_audit_tenant")],
            },
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
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
                    "slug",
                    models.CharField(
                        max_length=63,
                        primary_key=True,
                        serialize=False,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9._-]{0,62}\\Z",
                                "A name is 1 to 63 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "currency",
                    models.CharField(default="USD", max_length=3, validators=[headrace_core.currencies.check_currency]),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC", max_length=64, validators=[headrace_core.time_zones.check_time_zone]
                    ),
                ),
                ("suspended_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("slug",),
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("requests_per_minute__isnull", True),
                                models.Q(("requests_per_minute__gte", 1), ("requests_per_minute__lte", 100000000000)),
                                _connector="OR",
                            ),
                            models.Q(
                                ("input_tokens_per_minute__isnull", True),
                                models.Q(
                                    ("input_tokens_per_minute__gte", 1), ("input_tokens_per_minute__lte", 100000000000)
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("output_tokens_per_minute__isnull", True),
                                models.Q(
                                    ("output_tokens_per_minute__gte", 1),
                                    ("output_tokens_per_minute__lte", 100000000000),
                                ),
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
                        name="tenants_tenant_limits",
                        violation_error_message="A limit is a whole number from 1 to 100000000000.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("slug__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="tenants_tenant_slug"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")), name="tenants_tenant_currency"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Project",
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
                    "slug",
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
                ("name", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="projects", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("tenant", "slug"),
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("developer", "Developer"),
                            ("finance", "Finance"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="members", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("tenant", "user"),
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
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
                ("public_id", models.CharField(editable=False, max_length=12, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                (
                    "hint",
                    models.CharField(editable=False, help_text="The last four characters of the key.", max_length=4),
                ),
                (
                    "models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text="Public names of the models the key may call; empty: all.",
                        size=None,
                    ),
                ),
                (
                    "priority",
                    models.CharField(
                        choices=[("interactive", "Interactive"), ("standard", "Standard"), ("batch", "Batch")],
                        default="standard",
                        max_length=16,
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="keys", to="tenants.project"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="keys", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "ordering": ("project", "name"),
                "abstract": False,
            },
        ),
        migrations.AddConstraint(
            model_name="project",
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
                name="tenants_project_limits",
                violation_error_message="A limit is a whole number from 1 to 100000000000.",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("slug__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="tenants_project_slug"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.UniqueConstraint(fields=("tenant", "slug"), name="tenants_project_tenant_slug"),
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.UniqueConstraint(fields=("tenant", "user"), name="tenants_member_tenant_user"),
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["owner", "admin", "developer", "finance", "viewer"])),
                name="tenants_member_role",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
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
                name="tenants_apikey_limits",
                violation_error_message="A limit is a whole number from 1 to 100000000000.",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.UniqueConstraint(fields=("project", "name"), name="tenants_apikey_project_name"),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("priority__in", ["interactive", "standard", "batch"])),
                name="tenants_apikey_priority",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("public_id__regex", "^[0-9A-Za-z]{12}$")), name="tenants_apikey_public_id"
            ),
        ),
    ]
