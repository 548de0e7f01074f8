"""A list filter by the exact value typed in: an index answers it, unlike a search for a part of a word."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import TextFilter


def exact_filter(field: str, label: str = "") -> type:
    """The class of a filter on text column `field`."""

    class ExactFilter(TextFilter):
        title = label or field
        parameter_name = field

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            return queryset.filter(**{field: value.strip()}) if value and value.strip() else queryset

    return ExactFilter
