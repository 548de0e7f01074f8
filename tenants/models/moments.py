"""Moments that people choose. PostgreSQL writes years that Python cannot read: one row with such a moment, and nobody
reads the table any more, the data plane's snapshot included."""

from datetime import UTC, datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

END = datetime(9999, 1, 1, tzinfo=UTC)  # in every time zone still a moment that Python knows


def check_moment(moment: datetime) -> None:
    if moment >= END:
        raise ValidationError("The year 9998 is the last one that can be chosen.")


def moment_constraint(field: str) -> models.CheckConstraint:
    """An empty `field` passes."""
    return models.CheckConstraint(condition=Q(**{f"{field}__lt": END}), name=f"%(app_label)s_%(class)s_{field}")
