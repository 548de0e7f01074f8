from decimal import Decimal

import django.core.validators
import django.db.models.constraints
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("headrace", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Pool",
            fields=[
                (
                    "name",
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
                (
                    "engine",
                    models.CharField(
                        choices=[
                            ("sglang", "SGLang"),
                            ("vllm", "vLLM"),
                            ("llamacpp", "llama.cpp"),
                            ("openai", "OpenAI-compatible"),
                        ],
                        default="sglang",
                        max_length=16,
                    ),
                ),
                (
                    "model",
                    models.CharField(help_text="The name under which the engine serves the model.", max_length=200),
                ),
                ("api_key", models.BinaryField(null=True)),
                ("admin_key", models.BinaryField(null=True)),
                (
                    "gpu_hour_cost",
                    models.DecimalField(
                        decimal_places=6,
                        default=Decimal("0"),
                        help_text="What one GPU of this pool costs us an hour.",
                        max_digits=20,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="cost of a GPU hour",
                    ),
                ),
                (
                    "gpus_per_replica",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal("1"),
                        max_digits=10,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="GPUs per replica",
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="engines_pool_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("engine__in", ["sglang", "vllm", "llamacpp", "openai"])),
                        name="engines_pool_engine",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("gpu_hour_cost__gte", 0), ("gpus_per_replica__gte", 0)),
                        name="engines_pool_cost_not_negative",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Provider",
            fields=[
                (
                    "name",
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
                ("protocol", models.CharField(choices=[("openai", "OpenAI")], default="openai", max_length=16)),
                (
                    "base_url",
                    models.CharField(
                        max_length=500,
                        verbose_name="base URL",
                        validators=[
                            django.core.validators.RegexValidator(
                                "^https?://[A-Za-z0-9._\\[\\]:-]+(/[A-Za-z0-9._~/-]*)?\\Z",
                                "An address is http:// or https://, a host and an optional port and path, without user, query or fragment.",
                            )
                        ],
                    ),
                ),
                ("api_key", models.BinaryField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="engines_provider_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("protocol__in", ["openai"])), name="engines_provider_protocol"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("base_url__regex", "^https?://[A-Za-z0-9._\\[\\]:-]+(/[A-Za-z0-9._~/-]*)?$")
                        ),
                        name="engines_provider_url_http",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Replica",
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
                    "url",
                    models.CharField(
                        help_text="The server's root, without /v1: http://127.0.0.1:30000.",
                        max_length=500,
                        verbose_name="URL",
                        validators=[
                            django.core.validators.RegexValidator(
                                "^https?://[A-Za-z0-9._\\[\\]:-]+(/[A-Za-z0-9._~/-]*)?\\Z",
                                "An address is http:// or https://, a host and an optional port and path, without user, query or fragment.",
                            ),
                            django.core.validators.RegexValidator(
                                "/v1/*\\Z", "A replica's address is the server's root, without /v1.", inverse_match=True
                            ),
                        ],
                    ),
                ),
                (
                    "enabled",
                    models.BooleanField(default=True, help_text="Off: it finishes what it runs and gets nothing new."),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="replicas", to="engines.pool"
                    ),
                ),
            ],
            options={
                "ordering": ("pool", "name"),
                "constraints": [
                    models.UniqueConstraint(fields=("pool", "name"), name="engines_replica_pool_name"),
                    models.UniqueConstraint(
                        deferrable=django.db.models.constraints.Deferrable["DEFERRED"],
                        fields=("url",),
                        name="engines_replica_url",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[a-z0-9][a-z0-9._-]{0,62}$")), name="engines_replica_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("url__regex", "^https?://[A-Za-z0-9._\\[\\]:-]+(/[A-Za-z0-9._~/-]*)?$")),
                        name="engines_replica_url_http",
                    ),
                ],
            },
        ),
    ]
