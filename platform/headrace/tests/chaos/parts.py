"""What is killed and comes back: web processes under each server, Celery's worker and beat, the stores."""

import asyncio
import random
import signal
import sys
from pathlib import Path

from headrace.stack.parts.celery import Beat, Worker
from headrace.stack.process import Process
from headrace_dev.testing.clock import Clock
from headrace_dev.testing.stores import Services
from headrace_dev.testing.web import ROOT, WebProcess

LEASE_SECONDS = 4
SETTINGS = {"HEADRACE_LEASE_SECONDS": str(LEASE_SECONDS), "HEADRACE_DRAIN_SECONDS": "5", "HEADRACE_LOG_LEVEL": "INFO"}


class MortalWorker(Worker):
    """A worker that dies after so many lines of our code (mortal.py)."""

    def __init__(self, lines: int) -> None:
        super().__init__(SETTINGS | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "CHAOS_LINES": str(lines)})

    def command(self) -> list[str]:
        command = super().command()
        return [sys.executable, "-m", "headrace.tests.chaos.mortal", *command[command.index("-A") :]]


class Parts:
    """All of them. Everything is started from the main thread, with which it ends."""

    def __init__(self, services: Services, folder: Path) -> None:
        self.services, self._folder = services, folder
        self.clock = Clock(folder)  # of the web processes
        self.webs: dict[str, WebProcess] = {}
        self.urls: dict[str, str] = {}
        self._environment = SETTINGS | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
        self.worker = Process(Worker(self._environment), folder)
        self.beat = Process(Beat(folder / "beat", self._environment), folder)
        self.is_mortal = True
        self.deaths: list[str] = []

    async def start(self) -> None:
        self.beat.start()
        for server in ("uvicorn", "daphne"):
            await self.start_web(server)

    async def start_web(self, server: str) -> None:
        web = self.webs[server] = WebProcess(
            self._folder / f"{server}.log", server, **SETTINGS | self.clock.environment
        )
        await asyncio.to_thread(web.wait_ready, 300)
        self.urls[server] = web.url

    async def kill_web(self, server: str) -> None:
        await asyncio.to_thread(self.webs[server].kill)

    def freeze_web(self, server: str) -> None:
        self.webs[server].send(signal.SIGSTOP)

    def thaw_web(self, server: str) -> None:
        self.webs[server].send(signal.SIGCONT)

    async def keep_worker(self, rng: random.Random) -> None:
        """Start the worker whenever it is dead, to die at another line."""
        while True:
            if not self.worker.is_running:
                if self.worker.status is not None:
                    self.deaths.append(self.worker.last_words(1).rpartition("| ")[2])
                # Some die before they have read anything, some after many batches: after an outage, a single one may
                # take twenty thousand lines.
                lines = int(10 ** rng.uniform(2, 5.5))
                self.worker = Process(MortalWorker(lines) if self.is_mortal else self._immortal(), self._folder)
                self.worker.start()
            await asyncio.sleep(0.1)

    def _immortal(self) -> Worker:
        return Worker(self._environment)

    def stop(self) -> None:
        for process in (self.worker, self.beat):
            process.kill()
        for web in self.webs.values():
            web.kill()
        for store in (self.services.postgres, self.services.valkey):
            if not store.is_running:
                store.start()
                store.wait_ready()
