"""Reading large bodies: one at a time in a process, tenants in turn, and never more than half of the event loop.

Every other request of the process waits for a step of reading, and passes through the event loop some fifteen times
before its first byte. So each step is followed by a rest as long as itself, in which the others go on undelayed, and
one large body is read at a time. A tenant that sends hundreds of them waits for itself: another's comes next.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, closing
from typing import TypeVar

from headrace.gateway.errors import ApiError

T = TypeVar("T")
MOST_WAITING = 32  # large bodies of one tenant in a process; each is up to HEADRACE_BODY_LIMIT of its memory
LONGEST_REST = 0.02  # seconds; a step that took longer was not busy but kept waiting itself


class LargeBodies:
    """The turns of one process. A tenant that waits has one turn before any other has two."""

    def __init__(self) -> None:
        self._is_reading = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # tenants in the order of their turns

    async def read(self, tenant: str, steps: Generator[None, None, T]) -> T:
        """Take `steps` to their end when it is the tenant's turn; what they return.

        Raises what they raise, and ApiError where MOST_WAITING of the tenant's wait already.
        """
        async with self._turn(tenant):
            with closing(steps):
                return await self._take(steps)

    async def _take(self, steps: Generator[None, None, T]) -> T:
        while True:
            began = time.perf_counter()
            try:
                next(steps)
            except StopIteration as done:
                value: T = done.value
                return value
            await asyncio.sleep(min(time.perf_counter() - began, LONGEST_REST))

    @asynccontextmanager
    async def _turn(self, tenant: str) -> AsyncIterator[None]:
        if self._is_reading:
            await self._wait(tenant)
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = self._wake_next()

    async def _wait(self, tenant: str) -> None:
        queue = self._waiting.setdefault(tenant, deque())
        if len(queue) >= MOST_WAITING:
            raise ApiError(
                "rate_limit_exceeded", f"{MOST_WAITING} of your large requests are being read already.", retry_after=1
            )
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was our turn, and nobody takes it
                self._is_reading = self._wake_next()
            elif turn in queue:
                queue.remove(turn)
                if not queue and self._waiting.get(tenant) is queue:
                    del self._waiting[tenant]
            raise

    def _wake_next(self) -> bool:
        """Give the turn to the first of the next tenant, which then goes to the end; whether there is one."""
        while self._waiting:
            tenant = next(iter(self._waiting))
            queue = self._waiting.pop(tenant)
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    if queue:
                        self._waiting[tenant] = queue
                    turn.set_result(None)
                    return True
        return False
