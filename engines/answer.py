"""An upstream's answer, read as it arrives; inflated where somebody on the way compressed it unasked."""

import asyncio
import zlib
from types import TracebackType

import aiohttp
import httpx

from engines.errors import BadAnswer, Disconnected
from engines.transport import reader

# How gzip's bytes and zlib's begin, and no text of an answer. The header alone says too little: some proxies inflate a
# body and leave it there.
_MARKS = (b"\x1f", b"\x78")
_EITHER = 32 + zlib.MAX_WBITS
# What one read may be inflated to: answers shrink to a tenth or so, not to a hundredth.
_MOST = 16 * 2**20


class _Inflater:
    """Undoes gzip's compression or zlib's; what is neither passes as it is."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None
        self._is_plain = False

    def inflate(self, piece: bytes) -> bytes:
        """What `piece` brings, which may be nothing yet. Raises BadAnswer."""
        if self._is_plain:
            return piece
        if self._stream is None:
            if not piece.startswith(_MARKS):
                self._is_plain = True
                return piece
            self._stream = zlib.decompressobj(_EITHER)
        try:
            text = self._stream.decompress(piece, _MOST)
        except zlib.error as error:
            raise BadAnswer("compressed, and broken") from error
        if self._stream.unconsumed_tail:
            raise BadAnswer(f"more than {_MOST} bytes in one piece")
        return text


class Answer:
    """What an upstream answered, its body still to be read. Close it: closing aborts what still runs."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._reader = reader(response)
        self.content_type: str = response.headers.get("content-type", "")
        self._inflater = _Inflater() if "content-encoding" in response.headers else None

    async def read(self) -> bytes:
        """What has arrived, at least a byte; b"" at the end of the body.

        Raises Disconnected when it breaks off, BadAnswer where it cannot be inflated.
        """
        while True:
            try:
                piece = await self._reader.readany()
            except (aiohttp.ClientError, OSError) as error:
                raise Disconnected(type(error).__name__) from error
            if self._inflater is None or not piece:
                return piece
            if text := self._inflater.inflate(piece):
                return text

    @property
    def is_event_stream(self) -> bool:
        return self.content_type.lower().startswith("text/event-stream")

    @property
    def is_read(self) -> bool:
        """Whether the whole body was read, so that its connection serves the next request."""
        return self._reader.at_eof()

    async def whole(self, limit: int) -> bytes:
        """The whole body, at most `limit` bytes. Raises BadAnswer, Disconnected."""
        pieces, size = [], 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                raise BadAnswer(f"more than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def head(self, limit: int) -> bytes:
        """The first `limit` bytes of the body, or what came of it."""
        body = b""
        try:
            while len(body) < limit and (piece := await self.read()):
                body += piece
        except (Disconnected, BadAnswer):
            return body
        return body[:limit]

    async def drained(self, patience: float, most: int) -> bool:
        """Read on and forget it; False if it went on for `patience` seconds. Beyond `most` bytes nobody can tell."""
        size = 0
        try:
            async with asyncio.timeout(patience):
                while size <= most and (piece := await self.read()):
                    size += len(piece)
        except TimeoutError:
            return False
        except (Disconnected, BadAnswer):
            return True
        return True

    async def close(self) -> None:
        # What goes wrong while hanging up is no longer of interest: the connection is gone either way.
        try:
            await self._response.aclose()
        except (httpx.TransportError, aiohttp.ClientError, OSError):
            return

    async def __aenter__(self) -> "Answer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
