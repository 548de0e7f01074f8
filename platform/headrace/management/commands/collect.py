"""`manage.py collect`: follow the load and the state of every replica, and publish them, until told to stop."""

import asyncio
import signal
from typing import Any

import redis.asyncio
from django.conf import settings
from django.core.management.base import BaseCommand
from redis.exceptions import ReadOnlyError

from engines.load.collector import Collector
from headrace_core import log_writer

_REDIS_TIMEOUT = 2.0


class Command(BaseCommand):
    help = (
        "Asks every replica for its load each second, judges its state, and publishes both for the web processes; "
        "samples them each ten seconds. Any number may run: one works, the others stand by."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        log_writer.queue_standard_streams()
        asyncio.run(collect())


async def collect() -> None:
    """Collect until SIGTERM or SIGINT."""
    client = redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_REDIS_TIMEOUT,
        socket_connect_timeout=_REDIS_TIMEOUT,
        retry_on_error=[ReadOnlyError],  # after a failover the address leads to another server
    )
    work = asyncio.create_task(Collector(client).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        pass
    finally:
        await client.aclose()
