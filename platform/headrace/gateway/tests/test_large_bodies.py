"""Large bodies are read one at a time, tenants in turn, whoever leaves and however many one tenant sends."""

import asyncio
import random
from collections.abc import Generator

import pytest

from headrace.gateway.errors import ApiError
from headrace.gateway.process.large_bodies import MOST_WAITING, LargeBodies

Steps = Generator[None, None, str]


class Reading:
    """What is read, in order, and that never two are at once."""

    def __init__(self) -> None:
        self.large = LargeBodies()
        self.ended: list[str] = []
        self.running = 0

    def steps(self, name: str, count: int = 3) -> Steps:
        self.running += 1
        try:
            assert self.running == 1
            for _ in range(count):
                yield
            self.ended.append(name)
            return name
        finally:
            self.running -= 1

    def start(self, tenant: str, number: int = 0) -> "asyncio.Task[str]":
        return asyncio.create_task(self.large.read(tenant, self.steps(f"{tenant}{number}")))


async def test_another_tenants_body_is_read_before_the_second_of_one_that_waits() -> None:
    reading = Reading()
    many = [reading.start("a", number) for number in range(10)]
    await asyncio.sleep(0)
    others = [reading.start("b"), reading.start("c")]
    assert await asyncio.gather(*many, *others) == [*(f"a{number}" for number in range(10)), "b0", "c0"]
    assert reading.ended[:4] == ["a0", "a1", "b0", "c0"]


async def test_a_tenant_may_have_so_many_and_no_other_is_refused_for_it() -> None:
    reading = Reading()
    many = [reading.start("a", number) for number in range(MOST_WAITING + 5)]
    await asyncio.sleep(0)
    other = reading.start("b")
    ends = await asyncio.gather(*many, return_exceptions=True)
    refused = [end for end in ends if isinstance(end, ApiError)]
    assert [error.code for error in refused] == ["rate_limit_exceeded"] * 4
    assert await other == "b0"
    assert await reading.start("a", 99) == "a99"


@pytest.mark.parametrize("seed", range(20))
async def test_clients_that_leave_stop_nobody(seed: int) -> None:
    chance, reading = random.Random(seed), Reading()
    tasks = [reading.start(chance.choice("abc"), number) for number in range(40)]
    for _ in range(60):
        await asyncio.sleep(0)
        if chance.random() < 0.5:
            chance.choice(tasks).cancel()
    ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert all(isinstance(end, str | asyncio.CancelledError) for end in ends)
    assert await asyncio.wait_for(reading.start("d"), 10) == "d0"


async def test_a_body_that_is_refused_lets_the_next_be_read() -> None:
    def refused() -> Steps:
        yield
        raise ApiError("invalid_request", "no")

    reading = Reading()
    first = asyncio.create_task(reading.large.read("a", refused()))
    second = reading.start("a")
    with pytest.raises(ApiError):
        await first
    assert await second == "a0"
