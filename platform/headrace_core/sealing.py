"""Secrets at rest: what upstreams ask of us, encrypted under a key derived from SECRET_KEY.

Rotation: put the old SECRET_KEY in HEADRACE_SECRET_KEY_FALLBACKS. Old values open under any of the keys; new ones are
sealed under the first.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """The value was sealed under a SECRET_KEY that is no longer known, or it was damaged."""


def seal(text: str) -> bytes:
    """Space around it, such as the line end of the file it was copied from, is no part of a secret."""
    return _cipher(settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS)).encrypt(text.strip().encode())


def open(sealed: bytes | memoryview) -> str:
    """The text that `seal` was given; raises Unreadable."""
    try:
        return _cipher(settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS)).decrypt(bytes(sealed)).decode()
    except InvalidToken:
        raise Unreadable(
            "a stored secret cannot be decrypted: it was written under another SECRET_KEY. Name the old key in "
            "HEADRACE_SECRET_KEY_FALLBACKS, or enter the secret again"
        ) from None


@lru_cache(maxsize=8)
def _cipher(current: str, fallbacks: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derive(secret)) for secret in (current, *fallbacks)])


def _derive(secret: str) -> bytes:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"headrace upstream secrets").derive(secret.encode())
    return base64.urlsafe_b64encode(derived)
