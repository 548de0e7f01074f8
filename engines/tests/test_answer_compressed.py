"""An answer that somebody on the way compressed, though we ask for none of that."""

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from engines.client import Client
from engines.errors import BadAnswer, Busy
from engines.tests.test_client import OK, read, says

TEXT = b'data: {"choices":[]}\n\n' * 50


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.close()


def encoded(name: bytes, *pieces: bytes) -> list[bytes]:
    """An answer whose body, until its connection ends, is these pieces."""
    return [OK + b"content-encoding: " + name + b"\r\n\r\n", *pieces]


@pytest.mark.parametrize(
    ("name", "body"), [(b"gzip", gzip.compress(TEXT)), (b"deflate", zlib.compress(TEXT))], ids=["gzip", "deflate"]
)
async def test_it_is_inflated_however_it_is_cut(client: Client, name: bytes, body: bytes) -> None:
    assert await read(client, says(*encoded(name, body))) == TEXT
    assert await read(client, says(*encoded(name, body[:1], body[1:5], body[5:-9], body[-9:]))) == TEXT


async def test_it_is_read_as_it_comes(client: Client) -> None:
    """A proxy that flushes each event lets it pass at once."""
    squeeze = zlib.compressobj(wbits=31)
    pieces = [squeeze.compress(b"data: %d\n\n" % n) + squeeze.flush(zlib.Z_SYNC_FLUSH) for n in range(5)]
    assert await read(client, says(*encoded(b"gzip", *pieces))) == b"".join(b"data: %d\n\n" % n for n in range(5))


async def test_it_is_left_as_it_is_where_only_the_header_says_so(client: Client) -> None:
    assert await read(client, says(*encoded(b"gzip", TEXT[:9], TEXT[9:]))) == TEXT


@pytest.mark.parametrize(
    "body", [b"\x1f\x8b" + b"nonsense" * 9, gzip.compress(bytes(64 * 2**20))], ids=["broken", "bomb"]
)
async def test_it_is_none_where_it_cannot_be_inflated(client: Client, body: bytes) -> None:
    with pytest.raises(BadAnswer):
        await read(client, says(*encoded(b"gzip", body)))


async def test_a_refusal_is_understood_as_well(client: Client) -> None:
    body = gzip.compress(b'{"error":{"message":"slow down"}}')
    head = b"HTTP/1.1 429 x\r\nretry-after: 7\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    with pytest.raises(Busy) as raised:
        await read(client, says(head + body))
    assert raised.value.retry_after == 7
