"""JSON as some engines write it, made into JSON: Python's own writer knows NaN and infinities, which JSON does not.

What is no Unicode in it was repaired before (engines/text_repair.py).
"""

import json
from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """What `decoder` makes of `data`, mended if it has to be. Raises msgspec.DecodeError."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decoder.decode(_mended(data))


def _mended(data: bytes) -> bytes:
    """`data` with null for what is no number. Raises msgspec.DecodeError."""
    try:
        value = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None
    return json.dumps(value, ensure_ascii=False).encode()
