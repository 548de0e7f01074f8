"""The six limits that a tenant, a project and a key may each carry. None: no limit at this level.

The tenant's are set by operators alone; of those below, what an operator set is a ceiling for the tenant's members.
"""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

LIMIT_CEILING = 10**11
LIMIT_FIELDS = (
    "requests_per_minute",
    "input_tokens_per_minute",
    "output_tokens_per_minute",
    "concurrency",
    "max_prompt_tokens",
    "max_output_tokens",
)


def _limit(help_text: str) -> "models.BigIntegerField[int | None, int | None]":
    bounds = [MinValueValidator(1), MaxValueValidator(LIMIT_CEILING)]
    return models.BigIntegerField(null=True, blank=True, validators=bounds, help_text=help_text)


def limits_hold() -> Q:
    """The condition the database checks: every limit is absent or within 1 .. LIMIT_CEILING."""
    condition = Q()
    for name in LIMIT_FIELDS:
        bounds: dict[str, Any] = {f"{name}__gte": 1, f"{name}__lte": LIMIT_CEILING}
        condition &= Q(**{f"{name}__isnull": True}) | Q(**bounds)
    return condition


class Limits(models.Model):
    requests_per_minute = _limit("Requests admitted a minute.")
    input_tokens_per_minute = _limit("Prompt tokens admitted a minute.")
    output_tokens_per_minute = _limit("Generated tokens a minute; admission counts the most a request may generate.")
    concurrency = _limit("Requests running at once.")
    max_prompt_tokens = _limit("Largest prompt of one request, in tokens.")
    max_output_tokens = _limit("Largest output one request may ask for, in tokens.")

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=limits_hold(),
                name="%(app_label)s_%(class)s_limits",
                violation_error_message=f"A limit is a whole number from 1 to {LIMIT_CEILING}.",
            )
        ]

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are set, by field name."""
        return {name: value for name in LIMIT_FIELDS if (value := getattr(self, name)) is not None}


class CeiledLimits(Limits):
    """Limits that the tenant's members may set too, each up to the ceiling that an operator set, if any.

    The database keeps the ceilings and holds members to them: whatever an operator's connection sets is one.
    """

    ceilings = models.JSONField(default=dict, editable=False, help_text="The limits that an operator set, by name.")

    class Meta(Limits.Meta):
        abstract = True
