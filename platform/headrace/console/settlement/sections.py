"""All of what the settlement page shows."""

import redis
from django.conf import settings

from headrace.console.settlement.books import check, invoices, letters
from headrace.console.settlement.in_flight import budgets, holds, spools, stream
from headrace.console.settlement.section import Section
from headrace.console.settlement.store_durability import keeping
from headrace.console.settlement.workers import workers

_AWAY = (
    "Redis does not answer ({}): new requests are refused with 503, those that run finish and wait in spool files."
    " Start it again; its data outlives a restart."
)


def sections() -> tuple[list[Section], str]:
    """The sections, and what is in the way of telling more ("": nothing)."""
    dead, spooled, books = letters(), spools(), check()
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            seconds, micros = client.time()
            now_ms = int(seconds) * 1000 + int(micros) // 1000
            found = [stream(client, now_ms), dead, workers(client, now_ms), holds(client, now_ms), spooled]
            return [*found, budgets(client), invoices(client), keeping(client), books], ""
    except redis.RedisError as error:
        return [dead, spooled, books], _AWAY.format(type(error).__name__)
