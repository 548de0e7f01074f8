"""JSON values kept as they came. A field of type Raw takes any value, null included; absent ones default to NULL."""

import msgspec

NULL = msgspec.Raw(b"null")
_EMPTY = frozenset({b"null", b"[]"})


def is_empty(raw: msgspec.Raw) -> bool:
    """Whether it is null, absent or an empty list."""
    return raw is NULL or bytes(raw) in _EMPTY
