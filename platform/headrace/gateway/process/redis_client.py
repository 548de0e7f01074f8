"""The Redis client of the data plane: every call ends in a known time, or at once when its task is cancelled."""

import asyncio
from collections.abc import Iterable
from typing import Any

import hiredis
import redis.asyncio
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as TimedOut

from headrace.gateway.process.redis_tls import Certificates

_CONNECTIONS = 64


class Connection(redis.asyncio.Connection):
    """Packs commands by hiredis, in half the time of the client's own Python. (Unix sockets keep theirs.)"""

    def pack_command(self, *args: Any) -> list[bytes]:
        return [hiredis.pack_command((*str(args[0]).split(), *args[1:]))]  # "CLIENT SETNAME" is two words

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        """As the client's own, without its `asyncio.wait_for`: that makes a task for each command, and in Python 3.11
        it swallows a cancellation that comes just when the command is written. Raises RedisError."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]
        assert self._writer is not None
        if isinstance(command, str):
            command = command.encode()
        try:
            async with asyncio.timeout(self.socket_timeout):
                self._writer.writelines([command] if isinstance(command, bytes) else command)
                await self._writer.drain()
        except BaseException as error:
            await self.disconnect(nowait=True)  # nobody knows how much of it was written
            if isinstance(error, TimeoutError):
                raise TimedOut("Timeout writing to socket") from None
            if isinstance(error, OSError):
                raise Lost(f"Error while writing to socket: {error}") from error
            raise


class SecureConnection(Connection, redis.asyncio.SSLConnection):
    """As its parents, with the client's own TLS context."""

    def __init__(self, *, certificates: Certificates, **options: Any) -> None:
        super().__init__(**options)
        self._certificates = certificates

    async def _connect(self) -> None:
        async with asyncio.timeout(self.socket_connect_timeout):
            self.ssl_context.context = await self._certificates.context(self.ssl_context)
        await super()._connect()  # type: ignore[no-untyped-call]


def connect(url: str, timeout: float) -> "redis.asyncio.Redis":
    """A client whose every call ends within about three `timeout`s: waiting for a connection, one try, one more.

    A second try is safe: every script of tenants/meters may be repeated. It is made on a fresh connection, also where
    the server has become a replica: after a failover the address leads to another, and the old one keeps ours open.
    """
    pool = redis.asyncio.BlockingConnectionPool(
        max_connections=_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1),
        retry_on_error=[ReadOnlyError],
        protocol=2,
        driver_info=None,
        **_options(url),
    )
    return redis.asyncio.Redis.from_pool(pool)


def listener(url: str, timeout: float) -> "redis.asyncio.Redis":
    """A client for one subscription, which may wait for ever for a message; it connects within `timeout`."""
    pool = redis.asyncio.ConnectionPool(
        socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 1), protocol=2, driver_info=None, **_options(url)
    )
    return redis.asyncio.Redis.from_pool(pool)


def _options(url: str) -> dict[str, Any]:
    """What `url` says, and the class of its connections."""
    said: dict[str, Any] = dict(parse_url(url))
    match said.get("connection_class"):
        case None:
            return {**said, "connection_class": Connection}
        case redis.asyncio.SSLConnection:
            return {**said, "connection_class": SecureConnection, "certificates": Certificates()}
    return said
