"""The audit trail. Database triggers write it, on every path; this names who acts, for the length of a transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.http import HttpRequest


def origin_of(request: HttpRequest) -> str:
    """The address that a request came from, as the audit trail names it; "" through a socket that has none."""
    return str(request.META.get("REMOTE_ADDR") or "")


@contextmanager
def acting(*, who: str, origin: str) -> Iterator[None]:
    """A transaction whose changes the audit trail attributes to `who`, from `origin` (an address, or a command).

    Outside of it, changes are attributed to the database login. Inside an outer transaction the name stays to its end.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('headrace.actor', %s, true), set_config('headrace.origin', %s, true)",
            [_clean(who), _clean(origin)],
        )
        yield


@contextmanager
def naming(*, who: str, origin: str) -> Iterator[None]:
    """As `acting`, for a command that makes many transactions on its own connection, and no transaction around them."""
    _name(who, origin)
    try:
        yield
    finally:
        _name("", "")


def _name(who: str, origin: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('headrace.actor', %s, false), set_config('headrace.origin', %s, false)",
            [_clean(who), _clean(origin)],
        )


def _clean(text: str) -> str:
    return text.replace("\x00", "")[:200]
