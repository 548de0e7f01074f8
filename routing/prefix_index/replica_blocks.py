"""What one replica's cache is believed to hold: blocks with the time they were last used, oldest first."""

from collections import OrderedDict
from collections.abc import Iterable

from routing.prefix_index.blocks import BOUNDS, FIRST_BLOCK

# How much one report moves the trust in our predictions of a replica.
_TRUST_STEP = 0.1


class ReplicaBlocks:
    """Least recently used blocks within `capacity` bytes of prompt text and `most` entries.

    A chain is used from its end to its beginning, so that what goes first is a chain's end, as in a radix cache:
    whatever is held has all before it held too, and a match is found by bisection.
    """

    def __init__(self, capacity: int, most: int) -> None:
        self.capacity, self.most = capacity, most
        self.bytes = 0
        # How much of what was predicted, engines report: near 0 for one whose prefix cache is off.
        self.trust = 1.0
        self._used: OrderedDict[int, tuple[int, int]] = OrderedDict()  # hash: (size, time of last use in ms)

    def __len__(self) -> int:
        return len(self._used)

    def match(self, hashes: tuple[int, ...]) -> int:
        """How many of a chain's leading blocks are held."""
        low, high = 0, len(hashes)
        while low < high:
            middle = (low + high) // 2
            if hashes[middle] in self._used:
                low = middle + 1
            else:
                high = middle
        return low

    def last_used(self, block: int) -> int | None:
        found = self._used.get(block)
        return None if found is None else found[1]

    def use(self, hashes: tuple[int, ...], now: int) -> None:
        """The replica is sent this chain at `now` (ms)."""
        used = self._used
        for place in range(len(hashes) - 1, -1, -1):
            block = hashes[place]
            found = used.get(block)
            if found is None:
                size = BOUNDS[place] - (BOUNDS[place - 1] if place else 0)
                self.bytes += size
                used[block] = (size, now)
            else:
                used[block] = (found[0], max(found[1], now))
                used.move_to_end(block)
        self._trim()

    def forget(self, hashes: Iterable[int]) -> None:
        """These blocks are not held after all."""
        for block in hashes:
            if (found := self._used.pop(block, None)) is not None:
                self.bytes -= found[0]

    def forget_until(self, time: int) -> None:
        """Nothing that was last used at `time` or before is held any more."""
        used = self._used
        while used and next(iter(used.values()))[1] <= time:
            self._drop_oldest()

    def believe(self, share: float) -> None:
        """An engine reported so much (0..1) of what was predicted."""
        self.trust += _TRUST_STEP * (share - self.trust)

    def _trim(self) -> None:
        while self.bytes > self.capacity or len(self._used) > self.most:
            self._drop_oldest()

    def resize(self, *, capacity: int | None = None, most: int | None = None) -> None:
        """Give it other bounds; what no longer fits is forgotten."""
        self.capacity = self.capacity if capacity is None else max(FIRST_BLOCK, capacity)
        self.most = self.most if most is None else max(1, most)
        self._trim()

    def _drop_oldest(self) -> None:
        _, (size, _) = self._used.popitem(last=False)
        self.bytes -= size
