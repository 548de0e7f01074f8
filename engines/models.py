"""The servers that do the work: pools of our own engines, and hosted providers. Operators alone write these rows."""

from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from engines.modalities import MODALITIES, check_modalities
from engines.names import (
    CURRENCY_PATTERN,
    NAME_PATTERN,
    URL_PATTERN,
    check_currency,
    check_name,
    check_root,
    check_url,
)


class Engine(models.TextChoices):
    SGLANG = "sglang", "SGLang"
    VLLM = "vllm", "vLLM"
    LLAMACPP = "llamacpp", "llama.cpp"
    OPENAI = "openai", "OpenAI-compatible"


class Protocol(models.TextChoices):
    OPENAI = "openai", "OpenAI"


class Pool(models.Model):
    """Replicas of one engine that serve one model; a request may go to any of them."""

    name = models.CharField(primary_key=True, max_length=63, validators=[check_name])
    engine = models.CharField(max_length=16, choices=Engine.choices, default=Engine.SGLANG)
    model = models.CharField(max_length=200, help_text="The name under which the engine serves the model.")
    api_key = models.BinaryField(null=True, editable=False)
    admin_key = models.BinaryField(null=True, editable=False)
    gpu_hour_cost = models.DecimalField(
        "cost of a GPU hour",
        max_digits=20,
        decimal_places=6,
        default=Decimal(0),
        validators=[MinValueValidator(Decimal(0))],
        help_text="What one GPU of this pool costs us an hour.",
    )
    cost_currency = models.CharField(
        "its currency", max_length=3, default="USD", validators=[check_currency], help_text="Three letters: USD."
    )
    gpus_per_replica = models.DecimalField(
        "GPUs per replica",
        max_digits=10,
        decimal_places=4,
        default=Decimal(1),
        validators=[MinValueValidator(Decimal(0))],
    )
    orders_by_priority = models.BooleanField(
        default=False,
        help_text="Its engines were started to take a priority with each request (--enable-priority-scheduling).",
    )
    modalities = ArrayField(
        models.CharField(max_length=8),
        default=list,
        db_default=[],
        blank=True,
        validators=[check_modalities],
        help_text="What its model takes: text, image, audio, video. Empty: as its engines say, where they do.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME_PATTERN), name="engines_pool_name"),
            models.CheckConstraint(condition=Q(engine__in=Engine.values), name="engines_pool_engine"),
            models.CheckConstraint(
                condition=Q(modalities__contained_by=list(MODALITIES)), name="engines_pool_modalities"
            ),
            models.CheckConstraint(
                condition=Q(gpu_hour_cost__gte=0, gpus_per_replica__gte=0), name="engines_pool_cost_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(cost_currency__regex=CURRENCY_PATTERN), name="engines_pool_cost_currency"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Replica(models.Model):
    """One engine server of a pool. `url` is its root, without `/v1`: health, load and abort live beside it."""

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="replicas")
    name = models.CharField(max_length=63, validators=[check_name])
    url = models.CharField(
        "URL",
        max_length=500,
        validators=[check_url, check_root],
        help_text="The server's root, without /v1: http://127.0.0.1:30000.",
    )
    enabled = models.BooleanField(default=True, help_text="Off: it finishes what it runs and gets nothing new.")

    class Meta:
        ordering = ("pool", "name")
        constraints = [
            models.UniqueConstraint(fields=["pool", "name"], name="engines_replica_pool_name"),
            # Deferred, so that one transaction may exchange two addresses.
            models.UniqueConstraint(fields=["url"], name="engines_replica_url", deferrable=models.Deferrable.DEFERRED),
            models.CheckConstraint(condition=Q(name__regex=NAME_PATTERN), name="engines_replica_name"),
            models.CheckConstraint(condition=Q(url__regex=URL_PATTERN), name="engines_replica_url_http"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.name}"


class Provider(models.Model):
    """A hosted API. `base_url` includes the version, as its vendor writes it: https://api.openai.com/v1."""

    name = models.CharField(primary_key=True, max_length=63, validators=[check_name])
    protocol = models.CharField(max_length=16, choices=Protocol.choices, default=Protocol.OPENAI)
    base_url = models.CharField("base URL", max_length=500, validators=[check_url])
    api_key = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME_PATTERN), name="engines_provider_name"),
            models.CheckConstraint(condition=Q(protocol__in=Protocol.values), name="engines_provider_protocol"),
            models.CheckConstraint(condition=Q(base_url__regex=URL_PATTERN), name="engines_provider_url_http"),
        ]

    def __str__(self) -> str:
        return self.name


class ReplicaSample(models.Model):
    """One replica at one moment, each ten seconds, written by the collector and kept for 30 days in daily partitions.

    `hour_cost` is what the replica costs an hour while it is up. `retractions` counts on; see engines.load.figures
    for the other figures. A gap in time means that nobody looked, not that nothing ran.
    """

    pk = models.CompositePrimaryKey("replica", "at")
    at = models.DateTimeField()
    pool = models.TextField()
    replica = models.TextField()
    up = models.BooleanField()
    state = models.TextField()
    hour_cost = models.DecimalField(max_digits=30, decimal_places=10)
    currency = models.CharField(max_length=3)
    running = models.IntegerField(null=True)
    waiting = models.IntegerField(null=True)
    waiting_tokens = models.BigIntegerField(null=True)
    kv_used = models.FloatField(null=True)
    prefix_hit_rate = models.FloatField(null=True)
    retractions = models.BigIntegerField(null=True)
    output_tokens_per_second = models.FloatField(null=True)

    class Meta:
        db_table = "engines_replicasample"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.replica} {self.at:%Y-%m-%d %H:%M:%S}"


class PoolHour(models.Model):
    """A pool's samples of one hour (UTC), added up: engines/load/hours.py says how.

    `up_seconds` adds up those of its replicas; `covered_seconds` is how much of the hour was sampled at all.
    """

    pool = models.TextField()
    hour = models.DateTimeField()
    currency = models.CharField(max_length=3)
    cost = models.DecimalField(max_digits=30, decimal_places=12)
    up_seconds = models.FloatField()
    covered_seconds = models.FloatField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["pool", "hour", "currency"], name="engines_poolhour_bucket"),
        ]

    def __str__(self) -> str:
        return f"{self.pool} {self.hour:%Y-%m-%d %H:%M}"
