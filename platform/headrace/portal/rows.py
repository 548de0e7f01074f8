"""One tenant's rows: within `rows_of`, every query of tenants, billing and routing goes through the connection that
row-level security binds, with the tenant named. A forgotten filter then shows nothing of anybody else.

People, sessions and the platform's own tables stay on the default connection.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connections, transaction

APP = "app"
STATEMENT_SECONDS = 5
_bound: ContextVar[bool] = ContextVar("headrace_portal_bound", default=False)
_TENANTS_OWN = frozenset({"tenants", "billing", "routing"})


@contextmanager
def rows_of(tenant: str, *, who: str, origin: str) -> Iterator[None]:
    """A transaction that sees the rows of `tenant` alone, whose changes the audit trail attributes to `who`."""
    with transaction.atomic(using=APP):
        with connections[APP].cursor() as cursor:
            cursor.execute(
                "SELECT set_config('headrace.tenant', %s, true), set_config('headrace.actor', %s, true),"
                " set_config('headrace.origin', %s, true), set_config('statement_timeout', %s, true)",
                [_clean(tenant), _clean(who), _clean(origin), f"{STATEMENT_SECONDS}s"],
            )
        token = _bound.set(True)
        try:
            yield
        finally:
            _bound.reset(token)


class TenantRouter:
    """Django's database router: which connection a query takes."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return APP if _bound.get() and model._meta.app_label in _TENANTS_OWN else None

    db_for_write = db_for_read

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool | None:
        return True  # three connections, one database


def _clean(text: str) -> str:
    return text.replace("\x00", "")[:200]
