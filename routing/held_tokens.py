"""The tokens that replicas hold for requests: prompts to prefill, outputs to decode.

Requests take them in Redis when they are admitted and give them back when they are settled, whichever process they came
to; here stands what Redis said last, and what this process's own requests changed since.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import redis.asyncio


class HeldTokens:
    """`key` is the Redis key of a replica's room."""

    def __init__(self, key: Callable[[str], str] = str) -> None:
        self._key = key
        self._read: dict[str, int] = {}
        self._asking: Counter[str] = Counter()  # changed here before Redis was asked, which has not answered yet
        self._since: Counter[str] = Counter()

    def tokens(self, replica: str) -> int:
        """What the replica holds now, as far as is known here; never negative."""
        return max(0, self._read.get(replica, 0) + self._asking[replica] + self._since[replica])

    def enter(self, replica: str, tokens: int) -> None:
        """A request of this process has taken so much."""
        self._since[replica] += tokens

    def leave(self, replica: str, tokens: int) -> None:
        """And has given it back."""
        self._since[replica] -= tokens

    async def refresh(self, client: "redis.asyncio.Redis", replicas: Iterable[str]) -> None:
        """Read what is held of each, one reading at a time. Raises redis.RedisError; what is known stays then."""
        names = list(replicas)
        # What changes while Redis reads may be counted twice until the next time: a moment's caution.
        self._asking, self._since = self._since, Counter()
        try:
            values: list[Any] = await client.mget([self._key(name) for name in names]) if names else []
            self._read = {name: int(value or 0) for name, value in zip(names, values, strict=True)}
        except BaseException:
            self._since.update(self._asking)
            raise
        finally:
            self._asking = Counter()
