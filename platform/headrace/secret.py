"""The one secret everything else is derived from: HEADRACE_SECRET_KEY, else `HOME/secret`, made on first use."""

import os
import secrets
from pathlib import Path

from headrace import env


def read(home: Path) -> str:
    """The secret. A missing file is written (mode 0600); a second process of the same home reads the same one."""
    if value := os.environ.get("HEADRACE_SECRET_KEY"):
        if len(value) < 32:
            raise env.BadSetting("HEADRACE_SECRET_KEY needs at least 32 characters")
        return value
    path = home / "secret"
    try:
        return path.read_text().strip() if path.exists() else _mint(path)
    except OSError as error:
        raise env.BadSetting(f"the home {home} cannot be used: {error.strerror} (HEADRACE_HOME, --home)") from error


def _mint(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48) + "\n")
    try:
        os.link(draft, path)  # atomic, and the first of two processes wins
    except FileExistsError:
        pass  # the other process's secret is the one to use
    finally:
        draft.unlink()
    return path.read_text().strip()
