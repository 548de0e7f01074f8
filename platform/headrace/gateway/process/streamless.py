"""Which upstreams refuse to stream a model, so that whole answers are asked of them as such."""

import time

# An operator may have had the account verified since.
_SECONDS = 600.0


class Streamless:
    """Keys of upstreams (`Replica.key`), each remembered by this process for ten minutes."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, key: str) -> None:
        now = time.monotonic()
        self._until = {each: until for each, until in self._until.items() if until > now} | {key: now + _SECONDS}

    def contains(self, key: str) -> bool:
        return self._until.get(key, 0.0) > time.monotonic()
