"""One file of the spool: whole lines, on disk before `append` returns, and a lock that says whose it is."""

import fcntl
import os
from pathlib import Path


class SpoolFile:
    """The file of one process, made with the first line. Whoever holds its lock may write, deliver and remove it."""

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.path = path
        self._descriptor = descriptor

    @property
    def is_open(self) -> bool:
        return self._descriptor is not None

    def append(self, line: bytes) -> None:
        """Write `line` and have it on disk. Raises OSError, having written none of it."""
        if self._descriptor is None:
            self._descriptor = _create(self.path)
        size = os.fstat(self._descriptor).st_size
        try:
            rest = memoryview(line)
            while rest:  # a disk that is just getting full takes a part
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)  # or the next line would be joined to half of this one
            raise

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines()

    def set_aside(self, line: bytes) -> Path:
        """Have `line` on disk beside the file, where nobody delivers it from; the path. May be repeated."""
        aside = self.path.with_suffix(".aside")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return aside

    def remove(self) -> None:
        self.path.unlink()
        self.close()

    def close(self) -> None:
        """Give up the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def adopt(path: Path) -> SpoolFile | None:
    """The file of a process that died, locked; None while its process lives or another one delivers it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    if _locked(descriptor, path):
        return SpoolFile(path, descriptor)
    os.close(descriptor)
    return None


def _create(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if _locked(descriptor, path):
            break
        os.close(descriptor)  # between the two, another process took it for an orphan: it is empty, and soon gone
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)  # the name has to last as well
    finally:
        os.close(directory)
    return descriptor


def _locked(descriptor: int, path: Path) -> bool:
    """Lock it, unless somebody else has, or has removed the file under that name meanwhile."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False
