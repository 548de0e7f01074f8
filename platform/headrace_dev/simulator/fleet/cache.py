"""Paged KV with a prefix cache, as SGLang's radix cache keeps it: blocks by the hash of all that leads to them.

A block is free, private to one request, locked (cached and in use) or idle (cached, evicted when room is needed, the
least recently used first). Requests lock whole chains from their beginning and release them from their end, so the
oldest idle block never has a child that is younger: evicting it cuts no chain.
"""

from collections import OrderedDict
from collections.abc import Sequence

Chain = Sequence[int]  # the hash of each full block of a text, each one covering all before it


class BlockCache:
    """`total` blocks. free + private + locked + idle == total, always."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self.evicted = 0
        self._locks: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def locked(self) -> int:
        return len(self._locks)

    @property
    def available(self) -> int:
        """Blocks `take` could give now."""
        return self.free + len(self._idle)

    def match(self, chain: Chain, most: int) -> int:
        """How many leading blocks of `chain`, at most `most`, are cached. Changes nothing."""
        locks, idle = self._locks, self._idle
        for index in range(most):
            block = chain[index]
            if block not in locks and block not in idle:
                return index
        return most

    def idle_among(self, chain: Chain, count: int) -> int:
        """How many of the first `count` blocks are idle: locking them takes that much from `available`."""
        idle = self._idle
        return sum(chain[index] in idle for index in range(count))

    def lock(self, chain: Chain, start: int, end: int) -> None:
        """Use the cached blocks [start, end)."""
        locks, idle = self._locks, self._idle
        for index in range(start, end):
            block = chain[index]
            held = locks.get(block)
            if held is None:
                del idle[block]
                locks[block] = 1
            else:
                locks[block] = held + 1

    def unlock(self, chain: Chain, count: int) -> None:
        """Stop using the first `count` blocks; those that nobody uses become idle."""
        locks, idle = self._locks, self._idle
        for index in range(count - 1, -1, -1):
            block = chain[index]
            held = locks[block] - 1
            if held:
                locks[block] = held
            else:
                del locks[block]
                idle[block] = None

    def take(self, count: int) -> None:
        """Make `count` blocks private, evicting idle ones as needed. Raises ValueError where `available` is less."""
        if count > self.available:
            raise ValueError(f"{count} blocks wanted, {self.available} available")
        while self.free < count:
            self._idle.popitem(last=False)
            self.free += 1
            self.evicted += 1
        self.free -= count

    def give(self, count: int) -> None:
        """Free private blocks."""
        self.free += count

    def insert(self, chain: Chain, start: int, end: int) -> None:
        """Cache private blocks as [start, end) of `chain`, and lock them; those known already are freed instead."""
        locks, idle = self._locks, self._idle
        for index in range(start, end):
            block = chain[index]
            held = locks.get(block)
            if held is not None:
                locks[block] = held + 1
                self.free += 1
            elif block in idle:
                del idle[block]
                locks[block] = 1
                self.free += 1
            else:
                locks[block] = 1

    def clear(self) -> None:
        """Forget what is idle (/flush_cache)."""
        self.free += len(self._idle)
        self._idle.clear()
