"""TLS to Redis without certificates being read in the event loop: a client's connections share one context.

redis-py makes one for each connection, and with it reads every certificate that the machine trusts: tens of
milliseconds, in the event loop, and as many times as there are connections after an outage.
"""

import asyncio
import logging
import ssl
import time

from redis.asyncio.connection import RedisSSLContext

log = logging.getLogger("headrace.redis")

# Certificates are renewed on disk: a connection that is made later reads them anew.
KEPT_SECONDS = 60.0


class Certificates:
    """The context of one client's connections, as their common options say."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[ssl.SSLContext] | None = None

    async def context(self, options: RedisSSLContext) -> ssl.SSLContext:
        """Read in a thread, once for all who ask meanwhile. Raises OSError where it cannot be read and never was."""
        if self._context is not None and time.monotonic() - self._read_at < KEPT_SECONDS:
            return self._context
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(options))
        return await asyncio.shield(self._reading)

    async def _read(self, options: RedisSSLContext) -> ssl.SSLContext:
        options.context = None
        try:
            self._context = await asyncio.to_thread(options.get)
        except OSError as error:
            if self._context is None:
                raise
            log.warning("the certificates for Redis cannot be read, going on with the last: %s", error)
        self._read_at = time.monotonic()
        return self._context
