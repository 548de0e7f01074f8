"""A list filter by whether something has happened yet, in its own words: not whether a column is empty."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import EmptyFieldListFilter


def moment_filter(name: str, not_yet: str, happened: str) -> type:
    """The class of a filter called `name` on a column of moments that is null until it happened."""

    class MomentFilter(EmptyFieldListFilter):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.title = name

        def choices(self, changelist: Any) -> Iterator[Any]:
            for choice in super().choices(changelist):
                words = str(choice["display"]).replace("Not empty", happened).replace("Empty", not_yet)
                yield {**choice, "display": words}

    return MomentFilter
