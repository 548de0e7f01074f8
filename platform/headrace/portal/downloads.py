"""Files that go out piece by piece, whichever kind of server asks."""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

PIECE = 64 * 1024


def streamed(request: HttpRequest, pieces: Iterator[bytes], *, content_type: str, name: str) -> StreamingHttpResponse:
    """`pieces` as a file to keep. They may not ask the database: the request's transaction is over when they go."""
    content = _in_turn(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def kept(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """All of `pieces` now, in a file that is gone with the last piece: for what is read in a transaction."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  closed when the last piece has gone, or with the iterator
    for piece in pieces:
        file.write(piece)
    file.seek(0)

    def read() -> Iterator[bytes]:
        with file:
            while piece := file.read(PIECE):
                yield piece

    return read()


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    take = sync_to_async(lambda: next(pieces, None))
    while (piece := await take()) is not None:
        yield piece
