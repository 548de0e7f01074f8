"""Posting to an address that a tenant chose, without letting it reach what only this machine may.

The name is resolved here, every address it has is checked, and the connection goes to one that was: a name that answers
otherwise a moment later changes nothing. Redirects are not followed, proxies are not asked, of the answer only the
status is read, and all of it, the name included, is over by a deadline, however slowly the other side speaks.

HEADRACE_WEBHOOK_HTTP allows http, HEADRACE_WEBHOOK_NETWORKS names networks inside that may be reached all the same.
"""

import ipaddress
import ssl
import time
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

import httpcore
import httpx
from django.conf import settings

from engines.name_lookup import look_up

SECONDS = 8.0
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# IPv6 addresses that carry an IPv4 one to somewhere else: NAT64 and 6to4.
_CARRIERS = [ipaddress.ip_network(each) for each in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")]


class NotAllowed(Exception):
    """The address may not be posted to; the text says why, and nothing about what is there."""


def check_url(url: str) -> None:
    """Raise NotAllowed for what can be told without asking the network: the scheme, an address that is inside."""
    try:
        parts = urlsplit(url.encode("ascii").decode())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise NotAllowed("this is no address in plain ASCII") from None
    if parts.scheme not in ({"https", "http"} if settings.WEBHOOK_HTTP else {"https"}):
        raise NotAllowed("the address has to begin with https://")
    if not host or parts.username is not None or parts.password is not None:
        raise NotAllowed("the address has to name a host, and no user")
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        if (
            host.rstrip(".").rpartition(".")[2].lower() in {"localhost", "local", "internal"}
            and not settings.WEBHOOK_NETWORKS
        ):
            raise NotAllowed(f"{host} is not on the public network") from None
        return
    _check(literal, host)


def post(url: str, *, body: bytes, headers: Iterable[tuple[str, str]]) -> int:
    """The status of the answer. Raises NotAllowed, httpcore's errors of connections, and OSError."""
    check_url(url)
    until = time.monotonic() + SECONDS
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), SECONDS)
    guarded = httpcore.ConnectionPool(ssl_context=_trusted(), network_backend=_Guarded(until))
    with guarded as pool:
        extensions = {"timeout": timeouts}
        with pool.stream("POST", url, headers=list(headers), content=body, extensions=extensions) as answer:
            return answer.status


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted: reading them takes longer than most posts."""
    return httpx.create_ssl_context()


def allowed_addresses(host: str, port: int, *, seconds: float = SECONDS) -> list[str]:
    """What `host` resolves to, if all of it may be reached. Raises NotAllowed, httpcore.ConnectTimeout."""
    try:
        found = look_up(host, port).result(seconds)
    except TimeoutError:
        raise httpcore.ConnectTimeout(f"{host} is not found in time") from None
    except (OSError, UnicodeError):
        raise NotAllowed(f"{host} is not known") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        _check(ipaddress.ip_address(address.partition("%")[0]), host)
    return addresses


def _check(address: _Address, host: str) -> None:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in settings.WEBHOOK_NETWORKS):
        return
    is_carrier = any(address in network for network in _CARRIERS)
    if not address.is_global or address.is_multicast or address.is_reserved or is_carrier:
        raise NotAllowed(f"{host} is not on the public network")


class _Guarded(httpcore.NetworkBackend):
    """Connects to addresses that were checked, and to nothing that is no network."""

    def __init__(self, until: float) -> None:
        self._until, self._inner = until, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        error: Exception = NotAllowed(f"{host} is not known")
        for address in allowed_addresses(host, port, seconds=_left(self._until)):
            try:
                return _Stream(self._inner.connect_tcp(address, port, _left(self._until)), self._until)
            except httpcore.NetworkError as failed:
                error = failed
        raise error

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        raise NotAllowed("this is no address")


class _Stream(httpcore.NetworkStream):
    """A stream whose every step ends by the same deadline."""

    def __init__(self, inner: httpcore.NetworkStream, until: float) -> None:
        self._inner, self._until = inner, until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(self._until))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(self._until)), self._until)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("it took too long")
    return left
