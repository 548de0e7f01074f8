"""Whose certificates the client believes: those the machine trusts, or SSL_CERT_FILE names, beside the public ones."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from engines.client import Client
from engines.errors import Unreachable
from engines.protocols import PROTOCOLS, Upstream


def write_certificate(path: Path) -> None:
    """A key and a certificate for 127.0.0.1 that vouches for itself, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "e")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(address, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + secret)


async def test_it_believes_an_engine_of_a_company_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    write_certificate(tmp_path / "engine.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "engine.pem")
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    upstream = Upstream(PROTOCOLS["openai"], f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", "m")

    async def ask() -> bytes:
        client = Client()
        try:
            async with await client.chat(upstream, b"{}", connect_timeout=5) as said:
                return await said.whole(10)
        finally:
            await client.close()

    with pytest.raises(Unreachable):
        await ask()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "engine.pem"))
    assert await ask() == b"ok"
    server.close()
