"""The one secret everything else is derived from: HEADRACE_SECRET_KEY, else `HOME/secret`, made by `up`."""

import os
import secrets
from pathlib import Path

from headrace_core import env


def read(home: Path) -> str:
    """The secret; empty where there is none, and then Django refuses whatever needs one, and nothing else."""
    if value := os.environ.get("HEADRACE_SECRET_KEY"):
        if len(value) < 32:
            raise env.BadSetting("HEADRACE_SECRET_KEY needs at least 32 characters")
        return value
    path = home / "secret"
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise env.BadSetting(f"the home {home} cannot be used: {error.strerror} (HEADRACE_HOME, --home)") from error


def missing(home: Path) -> str:
    """What to tell somebody whose command needs the secret of `home`, where there is none."""
    return (
        f"there is no secret: set HEADRACE_SECRET_KEY, or name the home of a `manage.py up` (there is none in {home})"
    )


def mint(home: Path) -> None:
    """Write `home/secret` (mode 0600) where it is missing and the environment has none."""
    path = home / "secret"
    if os.environ.get("HEADRACE_SECRET_KEY") or path.exists():
        return
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
