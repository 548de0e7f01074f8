"""Looking up a host's addresses without anybody else waiting for it.

getaddrinfo blocks its thread for as long as a name server is silent, and event loops share a handful of such threads
(uvloop: four): a few slow names would stop all others. Here each name has a thread of its own while it is looked up;
whoever wants the same name meanwhile waits for the same answer, for as long as each of them likes.
"""

import asyncio
import os
import socket
import threading
from concurrent.futures import Future
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

# Names at a time. They are operators' upstreams and tenants' webhooks, of which few are tried at once.
MOST_LOOKUPS = 256
_Found = list[tuple[Any, ...]]
_running: dict[tuple[str, int, int, int], "Future[_Found]"] = {}
_lock = threading.Lock()


def look_up(host: str, port: int, family: int = socket.AF_UNSPEC, flags: int = 0) -> "Future[_Found]":
    """What `socket.getaddrinfo` finds for TCP, as a future that fails with its OSError or UnicodeError.

    Waiting for the future no longer leaves the look-up to whoever else waits. Raises OSError where too many names are
    being looked up.
    """
    key = (host, port, int(family), int(flags))
    with _lock:
        if (running := _running.get(key)) is not None:
            return running
        if len(_running) >= MOST_LOOKUPS:
            raise OSError("too many names are being looked up")
        found: Future[_Found] = Future()
        found.set_running_or_notify_cancel()  # so that one who waits no longer cannot cancel it for the others
        _running[key] = found
    threading.Thread(target=_find, args=(key, found), name=f"look up {host}", daemon=True).start()
    return found


def _find(key: tuple[str, int, int, int], found: "Future[_Found]") -> None:
    host, port, family, flags = key
    try:
        addresses = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        _end(key)
        found.set_exception(error)
    else:
        _end(key)
        found.set_result(addresses)


def _end(key: tuple[str, int, int, int]) -> None:
    with _lock:
        _running.pop(key, None)


class Resolver(AbstractResolver):
    """aiohttp's resolver, by `look_up`."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`. Raises OSError."""
        try:
            found = await asyncio.wrap_future(look_up(host, port, family, socket.AI_ADDRCONFIG))
        except UnicodeError as error:
            raise OSError(f"{host} is no name of a host") from error
        return [_result(host, port, *entry) for entry in found]

    async def close(self) -> None:
        """Nothing is kept."""


def _result(host: str, port: int, family: int, kind: int, protocol: int, name: str, address: Any) -> ResolveResult:
    place = address[0]
    if family == socket.AF_INET6 and len(address) > 3 and address[3]:  # link-local: the scope belongs to it
        place, _ = socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
    return ResolveResult(
        hostname=host,
        host=place,
        port=port,
        family=family,
        proto=protocol,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


os.register_at_fork(after_in_child=_running.clear)  # a child has none of the threads
