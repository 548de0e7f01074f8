"""Server-sent events off the wire: bytes in any pieces -> the data of each event.

Follows the WHATWG grammar (HTML Living Standard, 9.2.6) as far as engines use it: lines end in LF, CR or CRLF, a line
may be split anywhere (between CR and LF, inside a character), comments are dropped, several `data` lines join with LF.
Beyond it, an event that the end of the body cuts off before its blank line still counts: engines end like that, and the
last event is the one with the usage.
"""

from engines.text_repair import repair_text

_AFTER_BYTE_ORDER_MARK = b"\xef\xbb\xbfdata:"


class EventTooLarge(Exception):
    """One event exceeds the limit; the stream cannot be followed any further."""


class Framer:
    """Feed it what was read; it gives back the data of every event that is complete.

    Bytes stay bytes until an event is complete: a character that two reads share comes whole. What an event holds that
    is no Unicode is replaced (text_repair.py). `limit` bounds one event in bytes.
    """

    __slots__ = ("_data", "_limit", "_pending", "_rest", "_size", "_skip_lf")

    def __init__(self, limit: int = 4 * 2**20) -> None:
        self._limit = limit
        self._rest: list[bytes] = []  # pieces of a line, put together once: a long one may come in thousands
        self._pending = 0  # their bytes
        self._data: list[bytes] = []
        self._size = 0
        self._skip_lf = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each event that `chunk` completes. Raises EventTooLarge."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = self._line_so_far(chunk).split(b"\n")
        rest = lines.pop()
        events: list[bytes] = []
        for line in lines:
            if not line:
                self._complete(events)
            else:
                self._line(line)
        self._keep(rest)
        return events

    def end(self) -> list[bytes]:
        """The event that the end of the body cut off, if any."""
        events: list[bytes] = []
        if line := self._line_so_far(b""):
            self._line(line)
        self._complete(events)
        return events

    def _keep(self, piece: bytes) -> None:
        """The line that `piece` is of has not ended."""
        if piece:
            self._rest.append(piece)
            self._pending += len(piece)
            self._bound(self._pending)

    def _line_so_far(self, piece: bytes) -> bytes:
        """What was kept, and `piece`; nothing is kept any more."""
        if not self._rest:
            return piece
        line = b"".join((*self._rest, piece))
        self._rest.clear()
        self._pending = 0
        return line

    def _line(self, line: bytes) -> None:
        # Only data matters to an engine's answer: event, id and retry fields and comments carry nothing of it.
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._data.append(value)
            self._size += len(value)
            self._bound(0)
        elif line.startswith(_AFTER_BYTE_ORDER_MARK):  # legal before the first line, where some servers write one
            self._line(line[3:])

    def _complete(self, events: list[bytes]) -> None:
        if self._data:
            events.append(repair_text(self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
            self._data = []
            self._size = 0

    def _bound(self, pending: int) -> None:
        if self._size + pending > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
