"""Slugs: the names by which rows, records, files and Redis keys refer to each other. They never change."""

from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

SLUG_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
check_slug = RegexValidator(
    # \Z, not $: Python's $ also matches before a last line feed.
    SLUG_PATTERN.replace("$", r"\Z"),
    "A name is 1 to 63 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit.",
)


def slug_field(**options: Any) -> "models.CharField[str, str]":
    return models.CharField(max_length=63, validators=[check_slug], **options)


def slug_constraint(field: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__regex": SLUG_PATTERN}), name=f"%(app_label)s_%(class)s_{field}"
    )
