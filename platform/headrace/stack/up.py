"""`manage.py up`: bring every part up in order, say where things are, and stay until told to stop."""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.stack import banner, external_stores, ports
from headrace.stack.errors import StackError
from headrace.stack.home import Home
from headrace.stack.parts.celery import Beat, Worker
from headrace.stack.parts.collector import Collector
from headrace.stack.parts.engine import Engine, LlamaCpp, SGLang
from headrace.stack.parts.postgres import Postgres
from headrace.stack.parts.setup import Setup
from headrace.stack.parts.valkey import Valkey
from headrace.stack.parts.web import Web
from headrace.stack.process import end_with_make
from headrace.stack.supervisor import Supervisor
from headrace_core import secret_key

ENGINES = ("llamacpp", "sglang", "none")

# Streams that end need the engine until they have; whoever writes to a store stops before it.
_STOP_ORDER = ({"web", "worker", "beat", "collector"}, {"engine"}, {"valkey", "postgres"})


class Stopped(Exception):
    """A signal asked the stack to stop."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the person asked for. An address that is given is used, and its part not started."""

    root: Path
    home: Path
    port: int
    engine: str
    server: str
    drain_seconds: float
    database_url: str | None
    redis_url: str | None


class Up:
    """One run of the stack in the foreground."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        self.signals = 0

    def run(self) -> None:
        """Return after an orderly stop that a signal asked for; raise StackError when the stack could not go on.

        Either way nothing it started is running any more.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        end_with_make()
        home = Home(self.options.home)
        home.open()
        supervisor = Supervisor(home.logs, self.say, keep=(home.lock,))
        try:
            self._check()
            self._start(home, supervisor)
            while True:
                self._go_on()
                supervisor.poll()
                time.sleep(0.1)
        except Stopped:
            patience = f"{self.options.drain_seconds:g} s"
            self.say(f"stopping: running answers are finished, for {patience} at most; Ctrl-C again stops at once")
        finally:
            asked = self.signals
            supervisor.stop(_STOP_ORDER, hurry=lambda: self.signals > max(asked, 1))
            home.close()

    def _check(self) -> None:
        """Raises StackError for what would be found out late. The home is taken first: its `up` may have the port."""
        port = self.options.port
        if not ports.is_free(port):
            raise StackError(f"port {port} is in use: stop what listens there, or choose another with --port")
        if self.options.database_url is not None:
            external_stores.check_database(self.options.database_url)
        if self.options.redis_url is not None:
            external_stores.check_redis(self.options.redis_url)

    def _start(self, home: Home, supervisor: Supervisor) -> None:
        self.say(f"home      {home.path}")
        secret_key.mint(home.path)  # for its parts: this process has no use for it
        engine = self._engine(home)
        if engine is not None:
            supervisor.start(engine)  # first: it takes longest, and needs nobody
        addresses = self._start_stores(home, supervisor)
        environment = {**addresses, "HEADRACE_HOME": str(home.path), "HEADRACE_PORT": str(self.options.port)}
        setup = Setup(self.options.engine, engine.url if engine else "", environment)
        supervisor.run_once(setup, self._go_on)
        self.say("database  migrated")
        drain = self.options.drain_seconds
        supervisor.start(Web(self.options.port, self.options.server, environment, drain_seconds=drain))
        supervisor.wait_ready({"web"}, self._go_on)
        supervisor.start(Worker(environment))  # after the web: they would only slow it down
        supervisor.start(Beat(home.path / "beat", environment))
        supervisor.start(Collector(self.options.root, environment))
        supervisor.wait_ready({"engine", "worker", "beat", "collector"}, self._go_on)
        self.say(banner.text(home.demo, has_engine=engine is not None))

    def _start_stores(self, home: Home, supervisor: Supervisor) -> dict[str, str]:
        """Start the stores whose address is not given; the addresses of both, once they serve."""
        database_url, redis_url = self.options.database_url, self.options.redis_url
        if database_url is None:
            postgres = Postgres(home.path / "postgres", home.port("postgres"))
            database_url = postgres.url
            supervisor.start(postgres)
        if redis_url is None:
            valkey = Valkey(home.path / "valkey", home.port("valkey"))
            redis_url = valkey.url
            supervisor.start(valkey)
        addresses = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        supervisor.wait_ready({"postgres", "valkey"}, self._go_on)
        home.publish(addresses)
        return addresses

    def _engine(self, home: Home) -> Engine | None:
        match self.options.engine:
            case "llamacpp":
                return LlamaCpp(home.port("engine"))
            case "sglang":
                return SGLang(home.port("engine"), self.options.root / ".venv-sglang")
            case _:
                return None

    def _on_signal(self, number: int, frame: object) -> None:
        self.signals += 1

    def _go_on(self) -> None:
        if self.signals:
            raise Stopped


def in_this_tree(root: Path) -> None:
    """Let every child find the packages, wherever it is started and whether or not they are installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "platform")])
    os.environ["PYTHONUNBUFFERED"] = "1"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
