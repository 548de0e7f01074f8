"""Passwords of the embedded parts: made once per home, kept in files that only their owner reads."""

import os
import secrets
from pathlib import Path


def password(path: Path) -> str:
    """The password in `path`, minted on first use (mode 0600). Letters, digits, `-` and `_`: safe in a URL."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        minted = secrets.token_urlsafe(32)
        write_private(path, minted + "\n")
        return minted


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text` in one step, mode 0600; a reader sees the old text or the new, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
