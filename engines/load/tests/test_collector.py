"""The collector against real engines' surfaces, Valkey and Postgres: what it publishes, and who does."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TypeVar

import pytest
import redis.asyncio
from django.db import connection

from engines.errors import Unreachable
from engines.load.figures import KEY, State
from engines.load.lease import LEASE_KEY
from engines.load.outcomes import Outcomes
from engines.load.picture import Picture
from engines.load.tests.conftest import Start
from engines.models import Pool, Replica, ReplicaSample
from headrace_dev.simulator.process import ScriptedUpstream

T = TypeVar("T")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def busy() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
def pool(busy: ScriptedUpstream) -> Pool:
    busy.reset()
    pool = Pool.objects.create(
        name="small", engine="sglang", model="scripted", gpu_hour_cost=Decimal("2.5"), gpus_per_replica=Decimal(2)
    )
    Replica.objects.create(pool=pool, name="r1", url=busy.url)
    Replica.objects.create(pool=pool, name="r2", url="http://127.0.0.1:1")
    return pool


async def in_database(work: Callable[[], T]) -> T:
    """Run `work` in a thread that leaves no connection behind."""

    def run() -> T:
        try:
            return work()
        finally:
            connection.close()

    return await asyncio.to_thread(run)


async def change(name: str, **fields: object) -> None:
    await in_database(lambda: Replica.objects.filter(name=name).update(**fields))


def is_ready(picture: Picture) -> bool:
    """Whether a collector has seen r1 serve. `usable` is no such sign: what nobody has looked at is usable too."""
    return picture.state("small/r1") is State.READY


async def until(picture: Picture, holds: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while True:
        await picture.refresh()
        if holds():
            return
        assert time.monotonic() < deadline, picture.fleet
        await asyncio.sleep(0.1)


async def test_it_publishes_what_each_replica_says_and_samples_it(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool, busy: ScriptedUpstream
) -> None:
    busy.loads(num_running_reqs=5, num_waiting_reqs=4, token_usage=0.5, gen_throughput=80.0)
    collect()
    picture = Picture(valkey)
    await until(picture, lambda: picture.of("small/r1") is not None and picture.state("small/r2") is State.DOWN)
    load = picture.of("small/r1")
    assert load is not None
    assert (load.running, load.waiting, load.kv_used, load.output_tokens_per_second) == (5, 4, 0.5, 80.0)
    assert picture.usable("small/r1")
    assert not picture.usable("small/r2")
    assert picture.of("small/r2") is None
    assert picture.usable("some-provider")
    need = picture.fleet.pools["small"]
    assert (need.up, need.ready) == (1, 1)

    def sampled() -> list[ReplicaSample]:
        return list(ReplicaSample.objects.filter(replica="small/r1", running=5))

    deadline = time.monotonic() + 25
    while not (rows := await in_database(sampled)):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert (rows[0].hour_cost, rows[0].currency, rows[0].up, rows[0].state) == (Decimal(5), "USD", True, "ready")
    assert rows[0].at.second % 10 == 0


async def test_it_publishes_which_media_a_model_does_not_take(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool, busy: ScriptedUpstream
) -> None:
    collect()
    picture = Picture(valkey)
    await until(picture, lambda: is_ready(picture))
    assert picture.fleet.replicas["small/r1"].lacks == ()
    busy.about(has_image_understanding=False, has_audio_understanding=False, architectures=["LlamaForCausalLM"])
    await until(picture, lambda: picture.fleet.replicas["small/r1"].lacks == ("audio", "image", "video"))
    busy.about(has_image_understanding="nobody knows")
    await until(picture, lambda: picture.fleet.replicas["small/r1"].lacks == ())


async def test_it_drains_a_replica_that_its_operator_disabled(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool
) -> None:
    collect()
    picture = Picture(valkey)
    await until(picture, lambda: is_ready(picture))
    await change("r1", enabled=False)
    await until(picture, lambda: picture.state("small/r1") is State.DRAINING)
    assert not picture.usable("small/r1")
    assert picture.fleet.replicas["small/r1"].is_up
    await change("r1", enabled=True)
    await until(picture, lambda: is_ready(picture))


async def test_it_ejects_a_replica_that_answers_health_and_fails_requests(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool
) -> None:
    collect()
    picture, outcomes = Picture(valkey), Outcomes(valkey)
    await until(picture, lambda: is_ready(picture))
    for _ in range(3):
        outcomes.failed("small/r1", Unreachable())
    await outcomes.report()
    await until(picture, lambda: picture.state("small/r1") is State.EJECTED)
    assert not picture.usable("small/r1")
    assert picture.last_resort("small/r1")
    await until(picture, lambda: is_ready(picture), 20)
    assert picture.weight("small/r1") < 0.5


async def test_it_leaves_the_work_to_one_and_another_goes_on_when_that_ends(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool
) -> None:
    first = collect()
    picture = Picture(valkey)
    await until(picture, lambda: is_ready(picture))
    holder = await valkey.get(LEASE_KEY)
    collect()
    await asyncio.sleep(1.5)
    assert await valkey.get(LEASE_KEY) == holder
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await picture.refresh()
    since = picture.fleet.at
    await until(picture, lambda: picture.fleet.at > since + 500)
    assert await valkey.get(LEASE_KEY) not in {None, holder}
    assert picture.usable("small/r1")
    assert picture.weight("small/r1") == 1.0


async def test_it_is_unknown_and_not_idle_when_nobody_looks_any_more(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool
) -> None:
    task = collect()
    picture = Picture(valkey)
    await until(picture, lambda: picture.of("small/r1") is not None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    size = picture.capacity("small/r1")
    await until(picture, lambda: picture.of("small/r1") is None, 5)
    assert picture.capacity("small/r1") == size is not None  # a cache does not shrink while nobody looks
    assert picture.usable("small/r1")
    await valkey.set(KEY, b"of another version")
    await picture.refresh()
    assert picture.state("small/r2") is None
    assert picture.usable("small/r2")


async def test_it_does_not_let_a_slow_replica_delay_the_others(
    valkey: "redis.asyncio.Redis", collect: Start, pool: Pool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        await change("r2", url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        collect()
        picture = Picture(valkey)
        await until(picture, lambda: picture.of("small/r1") is not None)
        for _ in range(30):
            await asyncio.sleep(0.1)
            await picture.refresh()
            assert picture.of("small/r1") is not None
        assert picture.of("small/r2") is None
