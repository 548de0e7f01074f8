"""One prefix index in many web processes: each publishes its changes, and takes those of the others.

Changes are gathered for 50 ms, so that a process sends at most 20 messages a second however busy it is, and are known
everywhere within 100 ms. Nothing is stored or repeated: what is lost while Redis is away, or before a process started,
costs cache hits until the same prompts are sent again.
"""

import asyncio
import logging
import secrets
from collections import deque

import msgspec
import redis
import redis.asyncio

from headrace_core import store_keys
from routing.prefix_index.index import Change, PrefixIndex

log = logging.getLogger("headrace.prefix_index")

CHANNEL = store_keys.PREFIX_INDEX
BATCH_SECONDS = 0.05
# Of one message; and kept while Redis is away, the newest.
_BATCH, _MOST = 1000, 5000
_RECONNECT_SECONDS = 1.0


class _Message(msgspec.Struct, array_like=True, frozen=True):
    origin: bytes
    changes: list[Change]


_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(_Message)


class Sharing:
    """Give `tell` to an index, and run `send_for_ever` and `hear_for_ever`."""

    def __init__(self, client: "redis.asyncio.Redis") -> None:
        self._redis = client
        self._origin = secrets.token_bytes(8)
        self._waiting: deque[Change] = deque(maxlen=_MOST)
        self._is_hearing = True

    def tell(self, change: Change) -> None:
        """Let the others know, soon."""
        self._waiting.append(change)

    async def send_for_ever(self) -> None:
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            try:
                await self.send()
            except redis.RedisError:
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def send(self) -> None:
        """Publish what waits. Raises redis.RedisError; what was being sent is lost then."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            await self._redis.publish(CHANNEL, _encode(_Message(self._origin, batch)))

    async def hear_for_ever(self, index: PrefixIndex) -> None:
        """Take what the others publish; reconnect as often as needed."""
        while True:
            try:
                await self._hear(index)
            except (redis.RedisError, OSError) as error:
                if self._is_hearing:  # once an outage, not once a try
                    log.warning("the prefix index is not shared: %s", type(error).__name__)
                self._is_hearing = False
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _hear(self, index: PrefixIndex) -> None:
        async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(CHANNEL)
            while True:
                message = await channel.get_message(timeout=1.0)
                self._is_hearing = True
                if message is not None:
                    self._take(index, message["data"])

    def _take(self, index: PrefixIndex, data: bytes) -> None:
        try:
            message = _decoder.decode(data)
        except msgspec.DecodeError as error:  # of another version of this program
            log.warning("a message about the prefix index was not understood: %s", error)
            return
        if message.origin != self._origin:
            for change in message.changes:
                index.heard(change)
