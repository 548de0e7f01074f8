"""Beat, which says when the worker's tasks run, and goes on where Celery's own would not.

Where the clock is set back, that waits until the time has come again: for an hour nothing would be drained or reaped.
After a failover of Redis it stays with the server that it knows, which is a replica now and takes nothing. While no
worker runs it fills Redis with tasks, some 200 MB a day: `expires` is read by the worker alone.
"""

from datetime import datetime
from typing import Any

import redis
from celery.beat import PersistentScheduler, SchedulingError

# Tasks that wait, and seconds between runs of those that are then left to their next run.
MOST_WAITING = 200
FREQUENT = 60.0


class Scheduler(PersistentScheduler):  # type: ignore[misc]
    _seen: datetime | None = None  # the time of the last tick

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self._forget_what_is_to_come(self.app.now())  # as the file has it, of a clock that was ahead

    def tick(self, *args: Any, **kwargs: Any) -> float:
        now = self.app.now()
        if self._seen is not None and now < self._seen:
            self._forget_what_is_to_come(now)
        self._seen = now
        seconds: float = super().tick(*args, **kwargs)
        return seconds

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if getattr(entry.schedule, "seconds", FREQUENT) < FREQUENT and self._waiting() >= MOST_WAITING:
                return None
            return super().apply_async(entry, *args, **kwargs)
        except SchedulingError:
            self._connect_anew()
            raise

    def _waiting(self) -> int:
        try:
            return int(self.connection.default_channel.client.llen(self.app.conf.task_default_queue))
        except (redis.RedisError, OSError):
            return 0  # whoever sends hears why

    def _connect_anew(self) -> None:
        """For the next task: the address may lead to another server by now."""
        if (known := self.__dict__.pop("connection", None)) is not None:
            known.close()
        self.__dict__.pop("producer", None)

    def _forget_what_is_to_come(self, now: datetime) -> None:
        """What ran in times that have yet to come has just run."""
        for entry in self.schedule.values():
            entry.last_run_at = min(entry.last_run_at, now)
        self._heap = None  # the order they run in, by times that are wrong: made anew by the next tick
