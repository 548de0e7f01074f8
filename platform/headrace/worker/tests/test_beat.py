"""When tasks are due, whatever becomes of the clock."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings

from headrace.worker.beat import MOST_WAITING, Scheduler

SCHEDULE = {"quick": {"task": "quick", "schedule": 1.0}, "slow": {"task": "slow", "schedule": 5.0}}


class Clocked(Celery):  # type: ignore[misc]
    time = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class Noting(Scheduler):
    """Notes what it would send."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent: list[str] = []
        super().__init__(*args, **kwargs)

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent.append(entry.name)

    def pass_seconds(self, seconds: int) -> list[str]:
        """What is sent while so much time goes by."""
        self.sent.clear()
        for _ in range(seconds * 4):
            self.app.time += timedelta(seconds=0.25)
            for _ in range(4):
                self.tick()
        return sorted(set(self.sent))


@pytest.fixture
def app() -> Iterator[Clocked]:
    app = Clocked(set_as_current=False)
    app.conf.update(beat_schedule=SCHEDULE, broker_url="memory://", result_expires=None)
    yield app
    app.close()


def test_it_is_the_one_that_beat_runs() -> None:
    assert f"{Scheduler.__module__}:{Scheduler.__name__}" == settings.CELERY_BEAT_SCHEDULER


def test_it_goes_on_when_the_clock_is_set_back(app: Clocked, tmp_path: Path) -> None:
    beat = Noting(app, schedule_filename=str(tmp_path / "schedule"))
    assert beat.pass_seconds(12) == ["quick", "slow"]
    app.time -= timedelta(hours=1)
    assert beat.pass_seconds(12) == ["quick", "slow"]
    assert beat.sent.count("quick") <= 13
    beat.close()


def test_it_goes_on_after_a_start_with_a_clock_that_was_ahead(app: Clocked, tmp_path: Path) -> None:
    ahead = Noting(app, schedule_filename=str(tmp_path / "schedule"))
    ahead.pass_seconds(12)
    ahead.close()
    app.time -= timedelta(hours=1)
    beat = Noting(app, schedule_filename=str(tmp_path / "schedule"))
    assert beat.pass_seconds(12) == ["quick", "slow"]
    beat.close()


def test_it_connects_anew_where_redis_became_a_replica(tmp_path: Path) -> None:
    app = Celery(set_as_current=False)
    app.conf.update(beat_schedule=SCHEDULE, broker_url=settings.REDIS_URL, result_expires=None)
    app.conf.broker_transport_options = {"global_keyprefix": "hr:test-beat:"}
    beat = Scheduler(app, schedule_filename=str(tmp_path / "schedule"))
    entry = beat.schedule["quick"]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        try:
            beat.apply_entry(entry, producer=beat.producer)
            before = beat.connection
            client.replicaof("127.0.0.1", 1)
            beat.apply_entry(entry, producer=beat.producer)
            client.replicaof("NO", "ONE")
            assert beat.connection is not before
            assert not before.connected
            beat.apply_entry(entry, producer=beat.producer)
            assert client.llen("hr:test-beat:celery") == 2
        finally:
            client.replicaof("NO", "ONE")
            client.delete("hr:test-beat:celery", "hr:test-beat:_kombu.binding.celery")
    beat.close()
    app.close()


def test_it_fills_no_redis_while_no_worker_runs(tmp_path: Path) -> None:
    app = Celery(set_as_current=False)
    app.conf.update(beat_schedule=SCHEDULE, broker_url=settings.REDIS_URL, result_expires=None)
    app.conf.beat_schedule |= {"hourly": {"task": "hourly", "schedule": 3600.0}}
    app.conf.broker_transport_options = {"global_keyprefix": "hr:test-beat:"}
    beat = Scheduler(app, schedule_filename=str(tmp_path / "schedule"))
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        try:
            for _ in range(MOST_WAITING + 50):
                beat.apply_entry(beat.schedule["quick"], producer=beat.producer)
            assert client.llen("hr:test-beat:celery") == MOST_WAITING
            beat.apply_entry(beat.schedule["hourly"], producer=beat.producer)
            assert client.llen("hr:test-beat:celery") == MOST_WAITING + 1, "the next one is an hour away"
            client.delete("hr:test-beat:celery")
            beat.apply_entry(beat.schedule["quick"], producer=beat.producer)
            assert client.llen("hr:test-beat:celery") == 1
        finally:
            client.delete("hr:test-beat:celery", "hr:test-beat:_kombu.binding.celery")
    beat.close()
    app.close()
