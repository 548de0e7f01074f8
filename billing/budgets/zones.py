"""Whose midnight ends a window: tenants' time zones, where another one counts from the next period on.

The period is the month of the tenant's invoices (billing/invoicing/periods.py): a window in which it ends, and the zone
with it, ends too, and the next begins there. So windows meet without gap or overlap through any change of zone.
"""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, NamedTuple

from billing.budgets.windows import Window, day_begin, window_at

# Of these tenants; of all where they are None.
SELECT = """
SELECT tenant, month, since, time_zone FROM billing_tenantzone
WHERE %(tenants)s::text[] IS NULL OR tenant = ANY(%(tenants)s::text[]) ORDER BY tenant, since
"""


class _Change(NamedTuple):
    month: date
    since: datetime
    time_zone: str


class Zones:
    """Built whole from the rows of SELECT. A tenant that is in none has UTC."""

    def __init__(self, rows: Iterable[tuple[Any, ...]] = ()) -> None:
        self._of_tenant: dict[str, list[_Change]] = {}
        self.replace((), rows)

    def replace(self, tenants: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Know of `tenants` what `rows` say, and no more what was known."""
        for tenant in tenants:
            self._of_tenant.pop(tenant, None)
        for tenant, *change in rows:
            self._of_tenant.setdefault(tenant, []).append(_Change(*change))

    def window_at(self, tenant: str, period: str, at: datetime) -> Window:
        """The window of `period` in which `at` (aware) lies."""
        changes = self._of_tenant.get(tenant)
        if changes is None:
            return window_at(period, "UTC", at)
        index = max((place for place, change in enumerate(changes) if change.since <= at), default=0)
        change = changes[index]
        # The first hours of a zone may be of the month before by its own clocks; they are the new month's.
        begin = day_begin(change.month, change.time_zone) if index else at
        window = window_at(period, change.time_zone, max(at, begin))
        if window.is_endless:
            return window
        start = window.start
        if index:
            start = change.since if start <= begin else max(start, change.since)
        end = min([window.end, *(later.since for later in changes[index + 1 : index + 2])])
        return Window(start, end)

    def window_after(self, tenant: str, period: str, window: Window) -> Window | None:
        """The window that begins where `window` ends; None after an endless one."""
        return None if window.is_endless else self.window_at(tenant, period, window.end)
