"""The list of requests as it grows, as server-sent events: one query of one page each two seconds a visible tab."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.db import OperationalError, connections
from django.template.loader import render_to_string
from django.utils import timezone

from billing.periods import calendar_of
from headrace.portal import log
from headrace.portal.rows import APP, rows_of
from headrace_core.time_zones import zone_named
from tenants.models import ApiKey, Tenant

EVERY, LIFE = 2.0, 60.0  # seconds; when its life is over the browser asks again, and is looked at again
SPAN = timedelta(minutes=15)  # a request is on record when it ended: looking only after the newest would miss long ones


async def events(tenant: Tenant, chosen: dict[str, str], *, who: str, origin: str) -> AsyncIterator[str]:
    """Each event's data is the HTML of a table of rows not sent before, on one line. The page takes what it has not."""
    sent: set[str] = set()
    deadline = time.monotonic() + LIFE
    yield "retry: 1000\n\n"
    while time.monotonic() < deadline:
        try:
            html = await sync_to_async(_unsent)(tenant, chosen, sent, who, origin)
        except OperationalError:
            return  # the browser comes back
        yield f"data: {html}\n\n" if html else ": nothing new\n\n"
        await asyncio.sleep(EVERY)


def _zone(tenant: Tenant) -> ZoneInfo:
    """The one that counts now."""
    return zone_named(calendar_of(tenant.pk).time_zone_at(timezone.now()))


def _unsent(tenant: Tenant, chosen: dict[str, str], sent: set[str], who: str, origin: str) -> str:
    try:
        with rows_of(tenant.pk, who=who, origin=origin), timezone.override(_zone(tenant)):
            found = [row for row in log.recent(tenant, chosen, timezone.now() - SPAN) if str(row.pk) not in sent]
            if not found:
                return ""
            sent.update(str(row.pk) for row in found)
            keys = dict(ApiKey.objects.filter(pk__in={row.key for row in found}).values_list("pk", "name"))
            context = {"records": found, "keys": keys, "tenant": tenant, "is_new": True}
            return " ".join(render_to_string("portal/parts/request_table.html", context).split())
    finally:
        connections[APP].close()  # a tab that only looks on keeps no connection
