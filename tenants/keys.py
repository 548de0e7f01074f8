"""API keys: `sk-hr-` + public id (12) + secret (43: 256 bits) + checksum (6), all base62.

Only a keyed digest is stored, so neither the database nor a copy of it opens the door, and a lookup by digest takes the
same time for every wrong key. The checksum tells a mistyped or invented key from a real one without a lookup, and lets
a scanner of leaked files name one.
"""

import hmac
import secrets
import string
import zlib
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from django.conf import settings

from headrace_core.writes import InvalidWrite

PREFIX = "sk-hr-"
PUBLIC_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 12, 43, 6
KEY_LENGTH = len(PREFIX) + PUBLIC_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH
SHORTEST_SECRET, LONGEST_SECRET = 24, 256
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True, repr=False)
class MintedKey:
    """A new key. `text` is the secret: show it once, store only `digest` and `hint`."""

    public_id: str
    text: str
    digest: bytes

    @property
    def hint(self) -> str:
        return self.text[-4:]


def mint(public_id: str | None = None) -> MintedKey:
    """A new key; with `public_id`, a new secret of that one."""
    public_id = public_id or _random(PUBLIC_LENGTH)
    body = PREFIX + public_id + _random(SECRET_LENGTH)
    text = body + _checksum(body)
    return MintedKey(public_id, text, digest(text))


def adopt(text: str) -> MintedKey:
    """A key whose text the operator chose; raises InvalidWrite for one that is too short or not printable ASCII."""
    if not SHORTEST_SECRET <= len(text) <= LONGEST_SECRET or not _PRINTABLE.issuperset(text):
        text = f"A key's secret is {SHORTEST_SECRET} to {LONGEST_SECRET} printable ASCII characters without spaces."
        raise InvalidWrite({"secret": [text]})
    return MintedKey(parse(text) or _random(PUBLIC_LENGTH), text, digest(text))


def parse(text: str) -> str | None:
    """The public id inside a minted key, None for any other text. Says nothing on whether the key exists."""
    body, checksum = text[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    if len(text) != KEY_LENGTH or not text.isascii() or not body.startswith(PREFIX) or checksum != _checksum(body):
        return None
    public_id = body[len(PREFIX) : len(PREFIX) + PUBLIC_LENGTH]
    return public_id if set(public_id).issubset(_BASE62) else None


def digest(text: str) -> bytes:
    """What is stored of a key and what it is found by: 32 bytes. Takes any text, of any origin."""
    return _digest(settings.SECRET_KEY, text)


def digests(text: str) -> list[bytes]:
    """The digests under which `text` may be stored: the current SECRET_KEY's first, then those of its fallbacks."""
    return [_digest(secret, text) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _digest(secret: str, text: str) -> bytes:
    return hmac.digest(_derive(secret), text.encode("utf-8", "surrogatepass"), "sha256")


@lru_cache(maxsize=8)
def _derive(secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"api-key", sha256)


def _random(length: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def _checksum(body: str) -> str:
    number, text = zlib.crc32(body.encode("utf-8", "surrogatepass")), ""
    for _ in range(CHECKSUM_LENGTH):
        number, rest = divmod(number, len(_BASE62))
        text = _BASE62[rest] + text
    return text
