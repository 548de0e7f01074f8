"""Where a request goes: the public model, its route, and the route's ordered targets."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from engines.models import Pool, Provider
from routing.conditions import BadConditions, Conditions, conditions
from routing.policies import DEFAULT, POLICIES

MODEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$"
LONGEST_TIMEOUT = 86_400.0
TIMEOUT_FIELDS = ("connect_timeout", "first_byte_timeout", "between_events_timeout", "total_timeout")
LARGEST_WINDOW = 10**9
LARGEST_WEIGHT = 10_000

check_model_name = RegexValidator(
    # \Z, not $: Python's $ also matches before a last line feed.
    MODEL_NAME_PATTERN.replace("$", r"\Z"),
    "A model's name is 1 to 200 letters, digits and . _ : / -, and begins with a letter or digit.",
)


class CacheScope(models.TextChoices):
    TENANT = "tenant"
    SHARED = "shared"


class UnknownFields(models.TextChoices):
    REFUSE = "refuse"
    DROP = "drop"


MOST_WAITING = 100_000
POLICY_CHOICES = [(name, name.replace("_", " ")) for name in POLICIES]


def _tokens(**options: Any) -> "models.BigIntegerField[int, int]":
    return models.BigIntegerField(validators=[MinValueValidator(1), MaxValueValidator(LARGEST_WINDOW)], **options)


def _seconds(default: float, help_text: str) -> "models.FloatField[float, float]":
    bounds = [MinValueValidator(0.001), MaxValueValidator(LONGEST_TIMEOUT)]
    return models.FloatField(default=default, validators=bounds, help_text=f"{help_text} Seconds.")


def _target_seconds(help_text: str) -> "models.FloatField[float | None, float | None]":
    bounds = [MinValueValidator(0.0001), MaxValueValidator(LONGEST_TIMEOUT)]
    return models.FloatField(
        null=True, blank=True, validators=bounds, help_text=f"{help_text} Empty: any time is good."
    )


def _percent(help_text: str) -> "models.FloatField[float | None, float | None]":
    bounds = [MinValueValidator(0), MaxValueValidator(100)]
    return models.FloatField(null=True, blank=True, validators=bounds, help_text=help_text)


class Model(models.Model):
    """The public name that apps send."""

    name = models.CharField(primary_key=True, max_length=200, validators=[check_model_name])
    context_window = _tokens(help_text="Prompt and output together, in tokens.")
    default_max_tokens = _tokens(default=1024, help_text="Largest output of a request that names none, in tokens.")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=MODEL_NAME_PATTERN), name="routing_model_name"),
            models.CheckConstraint(
                condition=Q(context_window__gte=1, context_window__lte=LARGEST_WINDOW, default_max_tokens__gte=1)
                & Q(default_max_tokens__lte=F("context_window")),
                name="routing_model_window",
                violation_error_message="default_max_tokens must fit the context window.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.context_window and self.default_max_tokens and self.default_max_tokens > self.context_window:
            raise ValidationError({"default_max_tokens": "It must fit the context window."})


def _timeouts_hold() -> Q:
    condition = Q()
    for name in TIMEOUT_FIELDS:  # PostgreSQL's NaN is above every number, so the upper bound refuses it
        condition &= Q(**{f"{name}__gt": 0, f"{name}__lte": LONGEST_TIMEOUT})
    return condition


def _targets_hold() -> Q:
    condition = Q()
    for name in ("ttft_target", "tpot_target"):
        condition &= Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gt": 0, f"{name}__lte": LONGEST_TIMEOUT})
    return condition


class Route(models.Model):
    """How requests for one model are sent on: the targets in order, how long each step may take, what is shared."""

    model = models.OneToOneField(Model, models.CASCADE, primary_key=True, related_name="route")
    cache_scope = models.CharField(
        max_length=8,
        choices=CacheScope.choices,
        default=CacheScope.TENANT,
        help_text="Shared: tenants reuse each other's prefix cache, and can tell from the time an answer takes whether "
        "another tenant has sent the same prompt.",
    )
    unknown_fields = models.CharField(
        max_length=8,
        choices=UnknownFields.choices,
        default=UnknownFields.REFUSE,
        help_text="Drop: request fields we do not know are removed instead of refused.",
    )
    ignore_eos = models.BooleanField(
        default=False,
        db_default=False,
        verbose_name="ignore_eos",
        help_text="Requests may carry ignore_eos, with which an engine writes max_tokens whatever the model says: for "
        "benchmarks (guidellm, sglang.bench_serving).",
    )
    policy = models.CharField(
        max_length=32,
        choices=POLICY_CHOICES,
        default=DEFAULT,
        help_text="How a replica is chosen. Prefix aware: the one with most of the prompt in its cache, unless it "
        "carries more than its share.",
    )
    connect_timeout = _seconds(5, "To open the connection.")
    first_byte_timeout = _seconds(60, "To the first content.")
    between_events_timeout = _seconds(60, "Between two events of a stream.")
    total_timeout = _seconds(600, "For the whole request.")
    queue_timeout = _seconds(30, "To wait for room while all replicas are busy.")
    queue_length = models.PositiveIntegerField(
        default=1000,
        validators=[MaxValueValidator(MOST_WAITING)],
        help_text="Requests that may wait at a time, a quarter of them of one tenant. 0: none waits.",
    )
    ttft_target = _target_seconds("An answer is good if its first byte comes within so many seconds.")
    tpot_target = _target_seconds("An answer is good if each token after the first takes at most so many seconds.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(cache_scope__in=CacheScope.values), name="routing_route_cache_scope"),
            models.CheckConstraint(condition=Q(unknown_fields__in=UnknownFields.values), name="routing_route_unknown"),
            models.CheckConstraint(condition=Q(policy__in=list(POLICIES)), name="routing_route_policy"),
            models.CheckConstraint(condition=_timeouts_hold(), name="routing_route_timeouts"),
            models.CheckConstraint(condition=_targets_hold(), name="routing_route_latency_targets"),
            models.CheckConstraint(
                condition=Q(queue_timeout__gt=0, queue_timeout__lte=LONGEST_TIMEOUT, queue_length__lte=MOST_WAITING),
                name="routing_route_queue",
            ),
        ]

    def __str__(self) -> str:
        return self.model_id


class Target(models.Model):
    """One place a route may send to: a pool of ours or a provider, tried in order of `position`."""

    route = models.ForeignKey(Route, models.CASCADE, related_name="targets")
    position = models.PositiveIntegerField()
    pool = models.ForeignKey(Pool, models.PROTECT, null=True, blank=True, related_name="targets")
    provider = models.ForeignKey(Provider, models.PROTECT, null=True, blank=True, related_name="targets")
    upstream_model = models.CharField(
        max_length=200, blank=True, help_text="The model's name at the target; empty: the one the pool serves."
    )
    context_window = _tokens(
        null=True, blank=True, help_text="Of the model at this target, where it is smaller than the model's. In tokens."
    )
    conditions = models.JSONField(default=dict, blank=True, editable=False)
    weight = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(LARGEST_WEIGHT)],
        help_text="Targets with a weight that follow each other share the requests by it.",
    )
    canary = _percent("It takes this share of the requests it matches before all others, and no more. In percent.")
    shadow = _percent("This share of the requests it matches is copied to it; nobody sees its answers. In percent.")

    class Meta:
        ordering = ("route", "position")
        constraints = [
            # Deferred, so that one transaction may reorder the targets.
            models.UniqueConstraint(
                fields=["route", "position"], name="routing_target_position", deferrable=models.Deferrable.DEFERRED
            ),
            models.CheckConstraint(
                condition=Q(pool__isnull=False, provider__isnull=True) | Q(pool__isnull=True, provider__isnull=False),
                name="routing_target_one_kind",
                violation_error_message="A target is either a pool or a provider.",
            ),
            models.CheckConstraint(
                condition=Q(provider__isnull=True) | ~Q(upstream_model=""),
                name="routing_target_provider_model",
                violation_error_message="A provider's target names the provider's model.",
            ),
            models.CheckConstraint(
                condition=Q(context_window__isnull=True) | Q(context_window__gte=1, context_window__lte=LARGEST_WINDOW),
                name="routing_target_window",
            ),
            models.CheckConstraint(
                condition=(Q(weight__isnull=True) | Q(weight__gte=1, weight__lte=LARGEST_WEIGHT))
                & (Q(canary__isnull=True) | Q(canary__gte=0, canary__lte=100))
                & (Q(shadow__isnull=True) | Q(shadow__gte=0, shadow__lte=100)),
                name="routing_target_shares",
            ),
            models.CheckConstraint(
                condition=Q(weight__isnull=True, canary__isnull=True)
                | Q(weight__isnull=True, shadow__isnull=True)
                | Q(canary__isnull=True, shadow__isnull=True),
                name="routing_target_one_role",
                violation_error_message="A target has a weight, or is a canary, or a shadow.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.route_id} -> {self.slug}"

    def clean(self) -> None:
        try:
            conditions(self.conditions)
        except BadConditions as error:
            raise ValidationError({"conditions": str(error)}) from error

    @property
    def wants(self) -> Conditions:
        """Which requests it takes."""
        return conditions(self.conditions)

    @property
    def slug(self) -> str:
        """The name of the pool or provider, as records state it."""
        return self.pool_id or self.provider_id or ""
