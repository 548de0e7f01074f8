"""Long texts of a request, kept out of its decoding: each is one JSON string of hundreds of kilobytes or more.

Decoding one of 8 MiB and writing it anew takes tens of milliseconds in one piece. So long texts are cut out of the body
before it is decoded, with short marks in their places, checked and written anew a slice at a time, and put back as the
JSON that they are sent as.
"""

import re
import secrets
from collections.abc import Generator

import msgspec

LONG = 64 * 1024  # bytes
SLICE = 128 * 1024
# Of a text's beginning, so much stays before its mark: what kind of data an address holds is said there.
_HEAD = re.compile(rb"[ !#-\[\]-~]{0,128}")
# The names of what may hold a long text; whatever else does is decoded with the rest.
_NAMES = tuple(
    b'"%s"' % name
    for name in (b"content", b"text", b"url", b"arguments", b"reasoning_content", b"reasoning", b"refusal")
)
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
Span = tuple[int, int]


class Cut:
    """A body without its long texts. `body` is JSON as before; `literal(mark)` is the string that stood there."""

    def __init__(self, body: bytes, spans: list[Span]) -> None:
        self._token = secrets.token_hex(16)  # nobody can send a mark
        self._whole = body
        self._spans = [span for span in spans if _may_be_cut(body, span)]
        pieces, end = [], 0
        for number, (start, stop) in enumerate(self._spans):
            head = _HEAD.match(body, start + 1, stop - 1)
            pieces += [body[end : start + 1], head[0] if head else b"", f'{self._token}{number:04}"'.encode()]
            end = stop
        self.body = b"".join([*pieces, body[end:]]) if pieces else body
        self.left = len(self._spans)  # not put back yet

    def literal(self, text: str) -> bytes | None:
        """The inside of the string that the mark `text` stands for, as it was written; None for what is no mark."""
        if not self._spans or text[-36:-4] != self._token:
            return None
        start, stop = self._spans[int(text[-4:])]
        self.left -= 1
        return self._whole[start + 1 : stop - 1]


def _may_be_cut(body: bytes, span: Span) -> bool:
    before = body[max(0, span[0] - 64) : span[0]].rstrip()
    return span[1] - span[0] > LONG and before.endswith(b":") and before[:-1].rstrip().endswith(_NAMES)


def rewrite(literal: bytes) -> Generator[None, None, tuple[msgspec.Raw, int]]:
    """The JSON string with the inside `literal`, written anew, and the bytes of its text in UTF-8.

    Raises msgspec.DecodeError.
    """
    pieces, size, start = [b'"'], 0, 0
    while start < len(literal):
        stop = _cut_at(literal, start, start + SLICE) if start + SLICE < len(literal) else len(literal)
        text = msgspec.json.decode(b'"' + literal[start:stop] + b'"', type=str)
        size += len(text) if text.isascii() else len(text.encode())
        pieces.append(msgspec.json.encode(text)[1:-1])
        start = stop
        yield
    return msgspec.Raw(b"".join([*pieces, b'"'])), size  # copied once


def _cut_at(literal: bytes, start: int, at: int) -> int:
    """The last place up to `at` that is inside no character, escape or surrogate pair; `at` where there is none."""
    place = at
    while place > start and literal[place] & 0xC0 == 0x80:
        place -= 1
    place = _before_escape(literal, start, place)
    begun = literal.rfind(b"\\u", max(start, place - 5), place)
    if begun >= 0 and _before_escape(literal, start, begun) == begun:
        place = begun
    if _HIGH_SURROGATE.match(literal, max(start, place - 6), place):
        place = _before_escape(literal, start, place - 6)
    return place if place > start else at


def _before_escape(literal: bytes, start: int, place: int) -> int:
    """`place`, or the one before, where a backslash stands there that begins an escape."""
    run = place - start - len(literal[start:place].rstrip(b"\\"))
    return place - run % 2
