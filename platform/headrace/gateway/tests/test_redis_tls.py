"""TLS to Redis: certificates are read from disk beside the event loop, once for all connections, and again in time."""

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis.asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from headrace.gateway.process import redis_tls
from headrace.gateway.process.redis_client import connect, listener
from headrace_dev.testing.stores import Services


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that vouches for itself; `key.pem` beside it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    for extension, is_critical in (
        (x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), True),
        (x509.BasicConstraints(ca=True, path_length=None), True),
    ):
        made = made.add_extension(extension, critical=is_critical)
    signed = made.sign(key, hashes.SHA256())
    (tmp_path / "ca.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    return tmp_path / "ca.pem"


@asynccontextmanager
async def over_tls(services: Services, authority: Path) -> AsyncIterator[str]:
    """Valkey behind TLS; its address without options."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, authority.with_name("key.pem"))
    address = urlsplit(services.redis_url)

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(pass_on(reader, inner_writer), pass_on(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    login = address.netloc.rpartition("@")[0]
    yield f"rediss://{login}@127.0.0.1:{server.sockets[0].getsockname()[1]}{address.path}"
    server.close()


@pytest.mark.parametrize("make", [connect, listener])
async def test_the_event_loop_goes_on_while_certificates_are_read(
    services: Services, authority: Path, make: Callable[[str, float], "redis.asyncio.Redis"]
) -> None:
    """From a pipe that is empty until the event loop had a turn."""
    slow, had_a_turn, was_held = authority.with_name("pipe"), threading.Event(), []
    os.mkfifo(slow)

    def fill() -> None:
        was_held.append(not had_a_turn.wait(5))
        slow.write_bytes(authority.read_bytes())

    async with over_tls(services, authority) as url:
        client = make(f"{url}?ssl_ca_certs={slow}", 10)
        filling = threading.Thread(target=fill)
        filling.start()
        asking = asyncio.ensure_future(client.ping())
        await asyncio.sleep(0.05)
        had_a_turn.set()
        assert await asking
        filling.join()
        assert was_held == [False]
        await client.aclose()


async def test_connections_share_what_was_read_until_it_is_old(
    services: Services, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_tls(services, authority) as url:
        client = connect(f"{url}?ssl_ca_certs={authority}", 10)
        assert all(await asyncio.gather(*[client.ping() for _ in range(8)]))
        await asyncio.to_thread(authority.write_text, "no certificate any more")
        assert all(await asyncio.gather(*[client.ping() for _ in range(16)])), "the new ones read nothing"
        await client.connection_pool.disconnect()
        monkeypatch.setattr(redis_tls, "KEPT_SECONDS", 0.0)
        assert await client.ping(), "the last that could be read serves on"
        await client.aclose()
        fresh = connect(f"{url}?ssl_ca_certs={authority}", 10)
        with pytest.raises(redis.ConnectionError):
            await fresh.ping()
        await fresh.aclose()
