"""JSON values kept as they came. A field of type Raw takes any value, null included; absent ones default to NULL."""

import msgspec

NULL = msgspec.Raw(b"null")
_EMPTY = frozenset({b"null", b"[]", b"{}", b'""', b"false"})


def is_empty(raw: msgspec.Raw) -> bool:
    """Whether it is absent, null, or one of the other ways to say nothing."""
    return raw is NULL or bytes(raw) in _EMPTY
