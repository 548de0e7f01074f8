"""What each request used: one record per request, never changed, and the corrections that may follow it."""

from typing import TypeVar

from django.db import models

from tenants.models import Tenant


class Status(models.TextChoices):
    OK = "ok"
    CANCELLED = "cancelled"
    ERROR = "error"
    INCOMPLETE = "incomplete"
    ABANDONED = "abandoned"
    REAPED = "reaped"


class UsageSource(models.TextChoices):
    REPORTED = "reported"
    COUNTED = "counted"
    ESTIMATED = "estimated"


Row = TypeVar("Row", bound=models.Model, covariant=True)


class UsageQuerySet(models.QuerySet[Row]):
    def of(self, tenant: Tenant | str) -> "UsageQuerySet[Row]":
        return self.filter(tenant=tenant.pk if isinstance(tenant, Tenant) else tenant)


class Usage(models.Model):
    """The facts of a record and of a correction alike. Names refer to other tables by slug, without a foreign key.

    `cached_input_tokens` is a part of `input_tokens`, `reasoning_tokens` of `output_tokens`. `cost` is exact, in
    `currency`, None while unpriced; `cost_nano` is its ceiling in units of 1e-9, at most pricing.MOST_NANO. Times
    with `_ms` are milliseconds.
    """

    part = models.SmallIntegerField(default=0)
    tenant = models.TextField()
    project = models.TextField()
    key = models.TextField(help_text="The public id of the API key.")
    model = models.TextField()
    target = models.TextField()
    replica = models.TextField()
    kind = models.TextField()
    status = models.TextField(choices=Status.choices)
    finish_reason = models.TextField(null=True)  # noqa: DJ001  None: the upstream gave none, which is not an empty one
    input_tokens = models.BigIntegerField()
    cached_input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    reasoning_tokens = models.BigIntegerField()
    usage_source = models.TextField(choices=UsageSource.choices)
    cost = models.DecimalField(max_digits=36, decimal_places=12, null=True)
    cost_nano = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3)
    price = models.TextField(null=True)  # noqa: DJ001  None: no price applied
    admitted_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    queue_ms = models.FloatField()
    ttft_ms = models.FloatField(null=True)
    tpot_ms = models.FloatField(null=True)
    fallback = models.SmallIntegerField()
    cache = models.TextField()
    labels = models.JSONField(default=dict)
    upstream_id = models.TextField(null=True)  # noqa: DJ001  None: the upstream gave none

    class Meta:
        abstract = True

    @property
    def uncached_input_tokens(self) -> int:
        """Input that was computed: what is charged at the full rate."""
        return self.input_tokens - self.cached_input_tokens


class _PartZero(models.Manager["UsageRecord"]):
    def get_queryset(self) -> UsageQuerySet["UsageRecord"]:
        return UsageQuerySet["UsageRecord"](self.model, using=self._db).filter(part=0)

    def of(self, tenant: Tenant | str) -> UsageQuerySet["UsageRecord"]:
        return self.get_queryset().of(tenant)


class UsageRecord(Usage):
    """One request. The table is partitioned by month of `admitted_at`, which is the millisecond inside `request_id`.

    The database's key is (request_id, part, admitted_at). Rows with part > 0 are corrections and have their own model.
    """

    request_id = models.UUIDField(primary_key=True)

    objects = _PartZero()
    rows = UsageQuerySet["UsageRecord"].as_manager()  # corrections too, as rows like any other: to read, not to save

    class Meta:
        db_table = "billing_usagerecord"
        verbose_name = "record"
        ordering = ("-admitted_at", "-request_id")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.request_id)


class UsageCorrection(Usage):
    """What a record's request used beyond the record: signed differences. Less than nothing gives back what an estimate
    had charged too much; record and corrections together are never negative, in no class of tokens and in no sum."""

    id = models.TextField(primary_key=True)
    request_id = models.UUIDField()

    objects = UsageQuerySet["UsageCorrection"].as_manager()

    class Meta:
        managed = False
        db_table = "billing_usagecorrection"
        verbose_name = "correction"
        ordering = ("-admitted_at", "-request_id", "-part")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.id
