"""What all replicas of one process share: their clock, and what they held over time."""

import asyncio
import gc
from dataclasses import asdict, dataclass
from typing import Any

from headrace_dev.simulator.fleet.profile import Profile
from headrace_dev.simulator.fleet.served import ServedReplica

SAMPLED_EACH = 0.25  # simulated seconds


@dataclass(slots=True)
class Sample:
    """What a replica held at a moment, in simulated seconds since the start or the last reset."""

    at: float
    running: int
    waiting: int
    used_tokens: int


class Fleet:
    """`replicas` all of one profile. `reset` ends what runs and begins anew with empty caches."""

    def __init__(self, profile: Profile, replicas: int, *, scale: float, model: str) -> None:
        self.profile, self.scale, self.model = profile, scale, model
        self._count = replicas
        self._began = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self.replicas: list[ServedReplica] = []
        self.samples: list[list[Sample]] = []

    def clock(self) -> float:
        return (asyncio.get_running_loop().time() - self._began) / self.scale

    def start(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self.replicas = [ServedReplica(self.profile, self.clock, self.scale) for _ in range(self._count)]
        self.samples = [[] for _ in self.replicas]
        self._tasks = [asyncio.create_task(one.serve()) for one in self.replicas]
        self._tasks.append(asyncio.create_task(self._sample()))

    async def stop(self) -> None:
        """Requests that run end as aborted."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for replica in self.replicas:
            for run in list(replica.runs.values()):
                run.request.finish = "abort"
                run.tell()

    async def reset(self) -> None:
        await self.stop()
        gc.collect()  # serve.py lets none run by itself
        self.start()

    async def _sample(self) -> None:
        due = 0.0
        while True:
            due += SAMPLED_EACH
            await asyncio.sleep((due - self.clock()) * self.scale)
            for replica, samples in zip(self.replicas, self.samples, strict=True):
                held = replica.scheduler
                samples.append(Sample(due, held.running_count, len(held.waiting), held.used_tokens))

    def stats(self) -> dict[str, Any]:
        """The answer of GET /control/stats: for each replica its counters and samples; how late the process was."""
        late = sorted(each for replica in self.replicas for each in replica.lateness)
        return {
            "now": self.clock(),
            "scale": self.scale,
            "late_p99_ms": late[int(len(late) * 0.99)] * 1000 if late else 0.0,
            "replicas": [
                {
                    **asdict(replica.scheduler.counters),
                    "evicted_blocks": replica.scheduler.cache.evicted,
                    "open": len(replica.runs),
                    "samples": [[s.at, s.running, s.waiting, s.used_tokens] for s in samples],
                }
                for replica, samples in zip(self.replicas, self.samples, strict=True)
            ],
        }
