"""Files that go out piece by piece, whichever kind of server asks."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from billing.exports.cells import csv_rows, marked

PIECE = 64 * 1024
CSV_TYPE = "text/csv; charset=utf-8"


def spreadsheet(
    columns: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    name: str,
    numbers: Iterable[str] = (),
    documents: Iterable[str] = (),
) -> HttpResponse:
    """A page's table as a CSV file to keep: as `csv_rows`, marked for spreadsheets. For a few thousand rows at most."""
    pieces = marked(csv_rows(columns, rows, numbers=numbers, documents=documents))
    response = HttpResponse(pieces, content_type=CSV_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def streamed(request: HttpRequest, pieces: Iterator[bytes], *, content_type: str, name: str) -> StreamingHttpResponse:
    """`pieces` as a file to keep. They may not ask the database: the request's transaction is over when they go."""
    content: Any = _InTurn(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class Kept:
    """All of `pieces` now, in a file that is gone when they are taken or given up: for what a transaction reads."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with this
        for piece in pieces:
            self._file.write(piece)
        self._file.seek(0)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._file.closed or not (piece := self._file.read(PIECE)):
            self.close()
            raise StopIteration
        return piece

    def close(self) -> None:
        self._file.close()


class _InTurn:
    """`pieces` for a server that waits for each."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> "_InTurn":
        return self

    async def __anext__(self) -> bytes:
        piece = await sync_to_async(lambda: next(self._pieces, None))()
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        if (close := getattr(self._pieces, "close", None)) is not None:
            close()
