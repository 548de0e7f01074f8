"""The worker's signs of life: when each of its periodic tasks last ran to its end, by Redis's clock."""

import logging
import socket
from dataclasses import dataclass
from typing import Any

import redis
from celery import Task
from celery.schedules import crontab
from django.conf import settings

from headrace_core import store_keys

RAN = store_keys.TASKS_RAN
_HOST = socket.gethostname()
_DAY = 86_400.0
log = logging.getLogger("headrace.settlement")


class SignedTask(Task):  # type: ignore[misc]
    """A task that leaves a sign when it has run. A sign that Redis does not take is missing, which says enough."""

    abstract = True

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2) as client:
                note(client, self.name)
        except redis.RedisError as error:
            log.debug("no sign of %s: %s", self.name, error)


@dataclass(frozen=True, slots=True)
class Sign:
    """`every`: seconds between two runs as scheduled. `at`: epoch ms of the last one, None: never seen."""

    name: str
    every: float
    at: int | None
    host: str


def note(client: "redis.Redis", task: str) -> None:
    seconds, micros = client.time()
    client.hset(RAN, task, f"{int(seconds) * 1000 + int(micros) // 1000} {_HOST}")


def read(client: "redis.Redis") -> list[Sign]:
    """Of every task that is scheduled, the most frequent first."""
    found: Any = client.hgetall(RAN)
    signs = [_sign(name, entry, found.get(entry["task"].encode())) for name, entry in _schedule().items()]
    return sorted(signs, key=lambda sign: (sign.every, sign.name))


def _schedule() -> dict[str, dict[str, Any]]:
    schedule: dict[str, dict[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    return schedule


def _sign(name: str, entry: dict[str, Any], said: bytes | None) -> Sign:
    every = _DAY if isinstance(entry["schedule"], crontab) else float(entry["schedule"])
    at, _, host = (said or b"").decode().partition(" ")
    return Sign(name, every, int(at) if at.isdecimal() else None, host)
