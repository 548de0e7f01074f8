"""The policies of SGLang's own router as it documents them, for virtual time; over HTTP the real one runs.

cache_aware (sgl-model-gateway/src/policies/cache_aware.rs): when the busiest and the idlest replica differ by more than
`absolute` requests and by more than `relative` times, the shortest queue; else, where more than `threshold` of the
prompt matches what some replica was sent, the best match, and the shortest queue where not. It remembers what it sent,
up to a size it does not know the caches to have.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence

from headrace_dev.bench.routing.prepared import Prepared
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler


class Counting(ABC):
    """Counts the requests it has with each replica."""

    def __init__(self, name: str, replicas: int) -> None:
        self.name = name
        self.load = [0] * replicas
        self._at: dict[int, int] = {}

    def choose(self, one: Prepared, now: float) -> int:
        chosen = self.pick(one)
        self.load[chosen] += 1
        self._at[one.asked.number] = chosen
        return chosen

    @abstractmethod
    def pick(self, one: Prepared) -> int:
        """The index of the replica that takes it."""

    def began(self, one: Prepared, now: float) -> None:
        return

    def ended(self, one: Prepared, request: Request, now: float) -> None:
        self.load[self._at.pop(one.asked.number)] -= 1

    def watched(self, replicas: Sequence[Scheduler], now: float) -> None:
        return

    def shortest(self) -> int:
        return min(range(len(self.load)), key=lambda index: self.load[index])


class CacheAware(Counting):
    def __init__(
        self, replicas: int, *, threshold: float = 0.3, absolute: int = 64, relative: float = 1.5, name: str = ""
    ) -> None:
        super().__init__(name or f"cache_aware {threshold:g}/{absolute}/{relative:g}", replicas)
        self._threshold, self._absolute, self._relative = threshold, absolute, relative
        self._seen: list[set[int]] = [set() for _ in range(replicas)]

    def pick(self, one: Prepared) -> int:
        chosen = self._pick(one)
        self._seen[chosen].update(one.chain)
        return chosen

    def _pick(self, one: Prepared) -> int:
        most, least = max(self.load), min(self.load)
        if most - least > self._absolute and most > self._relative * least:
            return self.shortest()
        matched = [self._match(seen, one.chain) for seen in self._seen]
        best = max(range(len(matched)), key=lambda index: matched[index])
        blocks = max(1, len(one.chain))
        return best if matched[best] / blocks > self._threshold else self.shortest()

    @staticmethod
    def _match(seen: set[int], chain: list[int]) -> int:
        return next((index for index, block in enumerate(chain) if block not in seen), len(chain))


class RoundRobin(Counting):
    def __init__(self, replicas: int) -> None:
        super().__init__("round robin", replicas)
        self._turn = -1

    def pick(self, one: Prepared) -> int:
        self._turn += 1
        return self._turn % len(self.load)


class PowerOfTwo(Counting):
    def __init__(self, replicas: int, seed: int = 0) -> None:
        super().__init__("power_of_two", replicas)
        self._dice = random.Random(seed)

    def pick(self, one: Prepared) -> int:
        return min(self._dice.sample(range(len(self.load)), 2), key=lambda index: self.load[index])
