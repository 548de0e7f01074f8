"""Bounds of a request's shape: how many JSON values it may hold, and how large and deep its schemas may be.

What a body costs hangs on the values in it more than on its bytes: 8 MiB of one text are read in some milliseconds,
8 MiB of small ones in hundreds, which every stream of the process would wait for. So a large body's values are counted
before it is decoded, a slice at a time, and yields between are turns for everybody else.
"""

from collections.abc import Generator, Iterable

import msgspec

from headrace.gateway.dialects.chat_completions.long_texts import SLICE, Span
from headrace.gateway.errors import ApiError

# A smaller body cannot hold so much that reading it at once would keep others waiting.
SMALL_BODY = 64 * 1024
MOST_VALUES = 50_000
MOST_UNKNOWN_VALUES = 5_000  # of all fields that are not on the allow-list
MOST_SCHEMA_BYTES = 2**20  # of tools; of response_format
MOST_SCHEMA_DEPTH = 64
SCHEMAS = ("tools", "response_format")
_ALIKE = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
Steps = Generator[None, None, None]


def check_values(body: bytes, names: Iterable[str]) -> Generator[None, None, tuple[int, list[Span]]]:
    """Count the values of `body`, JSON of any size, and find its strings of more than a slice: from quote to quote.

    Raises ApiError beyond MOST_VALUES, with the field, of `names`, that holds the one that is too many.
    """
    values, start, is_text, began = 1, 0, False, 0
    long: list[Span] = []
    while start < len(body):
        piece = body[start : start + SLICE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # not between a backslash and what it stands before
            piece = piece[:-1] or body[start : start + 2]
        start += len(piece)
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")  # as long as before
        parts = piece.split(b'"')
        structure = b"".join(parts[is_text::2])
        if is_text and len(parts) > 1 and start - began > SLICE:
            long.append((began, start - len(piece) + len(parts[0]) + 1))
        is_text ^= len(parts) % 2 == 0
        if is_text and len(parts) > 1:
            began = start - len(parts[-1]) - 1
        values += structure.count(b",") + structure.count(b"[") + structure.count(b"{")
        yield
        if values > MOST_VALUES:
            yield from _refuse(body, start, names)
    return values, long


def _refuse(body: bytes, end: int, names: Iterable[str]) -> Steps:
    """Raise ApiError with the last of the fields `names` that begins before `end`."""
    last, found = -1, ""
    for name in names:
        at = _key(b'"%s"' % name.encode(), body, end)
        if at > last:
            last, found = at, name
        yield
    what = f"Invalid value for '{found}': with it the" if found else "The"
    raise ApiError("invalid_request", f"{what} body holds more than {MOST_VALUES} values.", param=found or None)


def _key(name: bytes, body: bytes, end: int) -> int:
    """Where the first of a few strings `name` is a key; -1 where none is."""
    at = -1
    for _ in range(8):
        at = body.find(name, at + 1, end)
        if at < 0 or body[at + len(name) : at + len(name) + 8].lstrip().startswith(b":"):
            return at
    return -1


def check_unknown_values(values: int, known: list[bytes]) -> Steps:
    """Raise ApiError where too many of a body's `values` are in none of the `known` fields' values."""
    inside = 0
    for value in known:
        inside += (yield from check_values(value, ()))[0]
    if values - inside > MOST_UNKNOWN_VALUES:
        raise ApiError(
            "invalid_request", f"The body holds more than {MOST_UNKNOWN_VALUES} values in fields that are not known."
        )


def check_schema(name: str, value: msgspec.Raw) -> Steps:
    """Bound a field that holds JSON schemas, of MOST_VALUES values at most. Raises ApiError."""
    raw = bytes(value)
    if len(raw) > MOST_SCHEMA_BYTES:
        raise ApiError("invalid_request", f"Invalid value for '{name}': over {MOST_SCHEMA_BYTES} bytes.", param=name)
    if raw.count(b"{") + raw.count(b"[") > MOST_SCHEMA_DEPTH and (yield from _depth(raw)) > MOST_SCHEMA_DEPTH:
        deep = f"Invalid value for '{name}': nested more than {MOST_SCHEMA_DEPTH} levels deep."
        raise ApiError("invalid_request", deep, param=name)


def _depth(raw: bytes) -> Generator[None, None, int]:
    """How deep objects and lists are nested in JSON; one more than MOST_SCHEMA_DEPTH stands for all that is deeper."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
        yield
    structure = b"".join(raw.split(b'"')[::2])
    yield
    brackets = structure.translate(_ALIKE, delete=_NO_BRACKETS)
    depth = 0
    while brackets and depth <= MOST_SCHEMA_DEPTH:
        brackets = brackets.replace(b"{}", b"")  # the innermost
        depth += 1
    return depth
