import django.core.validators
import django.db.models.constraints
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("headrace", "0001_initial"),
        ("engines", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Model",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}\\Z",
                                "A model's name is 1 to 200 letters, digits and . _ : / -, and begins with a letter or digit.",
                            )
                        ],
                    ),
                ),
                (
                    "context_window",
                    models.BigIntegerField(
                        help_text="Prompt and output together, in tokens.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000),
                        ],
                    ),
                ),
                (
                    "default_max_tokens",
                    models.BigIntegerField(
                        default=1024,
                        help_text="Largest output of a request that names none, in tokens.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000),
                        ],
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Target",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                (
                    "upstream_model",
                    models.CharField(
                        blank=True,
                        help_text="The model's name at the target; empty: the one the pool serves.",
                        max_length=200,
                    ),
                ),
                ("conditions", models.JSONField(blank=True, default=dict, editable=False)),
            ],
            options={
                "ordering": ("route", "position"),
            },
        ),
        migrations.CreateModel(
            name="Route",
            fields=[
                (
                    "model",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="route",
                        serialize=False,
                        to="routing.model",
                    ),
                ),
                (
                    "cache_scope",
                    models.CharField(
                        choices=[("tenant", "Tenant"), ("shared", "Shared")],
                        default="tenant",
                        help_text="Shared: tenants reuse each other's prefix cache, and can tell from the time an answer takes whether another tenant has sent the same prompt.",
                        max_length=8,
                    ),
                ),
                (
                    "unknown_fields",
                    models.CharField(
                        choices=[("refuse", "Refuse"), ("drop", "Drop")],
                        default="refuse",
                        help_text="Drop: request fields we do not know are removed instead of refused.",
                        max_length=8,
                    ),
                ),
                (
                    "connect_timeout",
                    models.FloatField(
                        default=5,
                        help_text="To open the connection. Seconds.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                    ),
                ),
                (
                    "first_byte_timeout",
                    models.FloatField(
                        default=60,
                        help_text="To the first content. Seconds.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                    ),
                ),
                (
                    "between_events_timeout",
                    models.FloatField(
                        default=60,
                        help_text="Between two events of a stream. Seconds.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                    ),
                ),
                (
                    "total_timeout",
                    models.FloatField(
                        default=600,
                        help_text="For the whole request. Seconds.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="model",
            constraint=models.CheckConstraint(
                condition=models.Q(("name__regex", "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$")), name="routing_model_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="model",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("context_window__gte", 1),
                    ("context_window__lte", 1000000000),
                    ("default_max_tokens__gte", 1),
                    ("default_max_tokens__lte", models.F("context_window")),
                ),
                name="routing_model_window",
                violation_error_message="default_max_tokens must fit the context window.",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="pool",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="targets",
                to="engines.pool",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="provider",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="targets",
                to="engines.provider",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="route",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="targets", to="routing.route"
            ),
        ),
        migrations.AddConstraint(
            model_name="route",
            constraint=models.CheckConstraint(
                condition=models.Q(("cache_scope__in", ["tenant", "shared"])), name="routing_route_cache_scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="route",
            constraint=models.CheckConstraint(
                condition=models.Q(("unknown_fields__in", ["refuse", "drop"])), name="routing_route_unknown"
            ),
        ),
        migrations.AddConstraint(
            model_name="route",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("connect_timeout__gt", 0),
                    ("connect_timeout__lte", 86400.0),
                    ("first_byte_timeout__gt", 0),
                    ("first_byte_timeout__lte", 86400.0),
                    ("between_events_timeout__gt", 0),
                    ("between_events_timeout__lte", 86400.0),
                    ("total_timeout__gt", 0),
                    ("total_timeout__lte", 86400.0),
                ),
                name="routing_route_timeouts",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.UniqueConstraint(
                deferrable=django.db.models.constraints.Deferrable["DEFERRED"],
                fields=("route", "position"),
                name="routing_target_position",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("pool__isnull", False), ("provider__isnull", True)),
                    models.Q(("pool__isnull", True), ("provider__isnull", False)),
                    _connector="OR",
                ),
                name="routing_target_one_kind",
                violation_error_message="A target is either a pool or a provider.",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("provider__isnull", True), models.Q(("upstream_model", ""), _negated=True), _connector="OR"
                ),
                name="routing_target_provider_model",
                violation_error_message="A provider's target names the provider's model.",
            ),
        ),
    ]
