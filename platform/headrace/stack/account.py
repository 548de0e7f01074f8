"""The unprivileged account that parts run as when the supervisor is root (PostgreSQL refuses to be root)."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from headrace.stack.errors import StackError


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int

    def owns(self, path: Path) -> None:
        """Give `path` itself to the account."""
        os.chown(path, self.uid, self.gid)


def unprivileged() -> Account | None:
    """`nobody` where this process is root, else None: an ordinary user's parts run as that user."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise StackError("this is root, and there is no account `nobody` to run PostgreSQL as") from None
    return Account(entry.pw_uid, entry.pw_gid)
