"""A throw-away Postgres and Valkey for one test session, run by the same parts as `manage.py up`."""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

import psycopg

from headrace.stack import ports
from headrace.stack.parts.postgres import Postgres
from headrace.stack.parts.valkey import Valkey
from headrace.stack.process import Process

_PREFIX = "headrace-test-"


class Services:
    """Both servers, on ports and in a folder of this session alone; they end with the process that started them."""

    def __init__(self, *, durable: bool = False) -> None:
        """durable: Postgres waits for the disk, as in production; tests can do without."""
        _sweep()
        self.home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = _lock(self.home)
        self._holders = [ports.reserve(), ports.reserve()]
        postgres_port, valkey_port = map(ports.number, self._holders)
        logs = self.home / "logs"
        keep = () if self._lock is None else (self._lock,)
        self._postgres = Postgres(self.home / "postgres", postgres_port, durable=durable)
        self._valkey = Valkey(self.home / "valkey", valkey_port)
        self.postgres = Process(self._postgres, logs, keep=keep)
        self.valkey = Process(self._valkey, logs, keep=keep)

    @property
    def database_url(self) -> str:
        return self._postgres.url

    @property
    def redis_url(self) -> str:
        return self._valkey.url

    def environment(self) -> dict[str, str]:
        """What settings must find before Django reads them."""
        return {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "HEADRACE_HOME": str(self.home),
            "HEADRACE_SECRET_KEY": "a secret of the test session, the same in each of its processes",
        }

    def start(self) -> None:
        """Start both without waiting for them."""
        self.valkey.start()
        self.postgres.start()

    def wait_ready(self) -> None:
        self.valkey.wait_ready()
        self.postgres.wait_ready()
        for holder in self._holders:
            holder.close()

    def empty_tables(self) -> None:
        """Remove every row, whoever wrote it; what migrations put there stays, and sequences go on.

        Rows are deleted: most tables have none, and TRUNCATE makes each of them and its indexes anew.
        """
        with psycopg.connect(self.database_url) as connection:
            rows = connection.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
                " AND tablename NOT IN ('django_migrations', 'django_content_type', 'auth_permission')"
            ).fetchall()
            tables = [row[0] for row in rows]
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute("SET LOCAL session_replication_role = replica")  # no triggers: some rows are undeletable
            connection.execute(f"LOCK {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")  # whoever still writes is done
            connection.execute("; ".join(f"DELETE FROM ONLY {table}" for table in tables))

    def stop(self) -> None:
        self.postgres.kill()  # nothing of it is kept
        self.valkey.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def _lock(home: Path) -> int | None:
    """Hold `home/lock` as long as this session or one of its servers lives; None if another process has it."""
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep() -> None:
    """Remove the folders of sessions that were killed."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if not os.access(home / "lock", os.W_OK) or time.time() - home.stat().st_mtime < 60:
            continue  # somebody else's, or one that is just being made
        if (descriptor := _lock(home)) is not None:
            shutil.rmtree(home, ignore_errors=True)
            os.close(descriptor)
