"""Limits are exact over two web processes under two servers: one Valkey decides, at once, for all of them."""

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.upstream import prompt
from tenants.models import Project, Tenant


class Pair:
    """One world behind two web processes, asked in turn."""

    def __init__(self, sites: dict[str, Place]) -> None:
        self.place, self.other = sites.values()

    def key(self, **limits: Any) -> str:
        _, secret = self.place.world.add_key(**limits)
        self.wait_known(secret)
        return secret

    def wait_known(self, secret: str) -> None:
        for place in (self.place, self.other):
            place.wait_known(secret=secret)

    def at_once(self, number: int, *contents: str, secret: str, **fields: Any) -> tuple[list[Answer], float]:
        """So many chats at one instant, and how many seconds they took; every second one at the other process."""
        began = time.monotonic()
        with ThreadPoolExecutor(number) as threads:
            asked = [
                threads.submit(partial(place.chat, contents[turn % len(contents)], secret=secret, **fields))
                for turn, place in zip(range(number), [self.place, self.other] * number, strict=False)
            ]
            return [answer.result() for answer in asked], time.monotonic() - began


@pytest.fixture(scope="module")
def pair(sites: dict[str, Place]) -> Pair:
    return Pair(sites)


def statuses(answers: list[Answer]) -> Counter[int]:
    for answer in answers:
        if answer.status == 429:
            assert (answer.error["code"], answer.error["type"]) == ("rate_limit_exceeded", "rate_limit_error")
            assert int(answer.headers["retry-after"]) >= 1
            assert 1 <= int(answer.headers["retry-after-ms"]) <= 1000 * int(answer.headers["retry-after"])
    return Counter(answer.status for answer in answers)


def test_it_admits_so_many_requests_a_minute(pair: Pair) -> None:
    secret = pair.key(requests_per_minute=6)
    answers, seconds = pair.at_once(200, "Hello", secret=secret, max_tokens=1)
    admitted = statuses(answers)[200]
    assert 6 <= admitted <= 6 + math.ceil(seconds / 10), "one more each ten seconds"
    assert statuses(answers)[429] + late(answers) == 200 - admitted


SLOW, SLOWER = prompt(first_ms=2500, tokens=2), prompt(first_ms=9000, tokens=2)


def late(answers: list[Answer]) -> int:
    """On a busy machine Valkey may answer some too late; what it took for them comes back after a moment."""
    assert {answer.error["code"] for answer in answers if answer.status == 503} <= {"redis_unavailable"}
    return statuses(answers)[503]


def test_it_admits_so_many_at_once(pair: Pair) -> None:
    secret = pair.key(concurrency=3)
    for number, content in ((200, SLOWER), (20, SLOW)):  # as many again once they are done
        answers, _ = pair.at_once(number, content, secret=secret, stream=True)
        admitted = statuses(answers)[200]
        assert admitted == 3 or (admitted < 3 and late(answers))
        assert statuses(answers)[429] + late(answers) == number - admitted
        assert {answer.headers["retry-after"] for answer in answers if answer.status == 429} == {"1"}


@pytest.mark.parametrize("measure", ["input", "output"])
def test_it_admits_so_many_tokens_a_minute(pair: Pair, measure: str) -> None:
    """What runs holds its worst case, so no more are let in than could all come true."""
    body = {"max_tokens": 100} if measure == "output" else {"max_tokens": 1}
    content = SLOWER + "x" * 1000
    held = 100
    if measure == "input":
        probe = pair.key(input_tokens_per_minute=100_000)
        [answer], _ = pair.at_once(1, content, secret=probe, stream=True, **body)
        held = 100_000 - int(answer.headers["x-ratelimit-remaining-input-tokens"])
    limit = held * 3 + held // 2
    secret = pair.key(**{f"{measure}_tokens_per_minute": limit})
    answers, _ = pair.at_once(200, content, secret=secret, stream=True, **body)
    # While they run, half a request's worth comes back at most: 3.5 requests a minute are one in 17 seconds.
    assert statuses(answers)[200] in {3, 4} or late(answers)
    assert statuses(answers)[200] <= 4
    assert statuses(answers)[200] + statuses(answers)[429] + late(answers) == 200
    used = sum(answer.record[f"{measure}_tokens"] for answer in answers if answer.status == 200)
    last = pair.place.chat(secret=secret, max_tokens=1)
    left = int(last.headers[f"x-ratelimit-remaining-{measure}-tokens"])
    assert limit - used - 100 <= left <= limit, "what was not used came back"


def test_it_takes_the_smallest_of_one_limit_set_three_times(pair: Pair) -> None:
    """Not the sum, not each of them a share: of equal ones the one, of others the least."""
    world = pair.place.world
    for number, limits in enumerate([(4, 4, 4), (9, 4, 9), (4, 9, 9), (9, 9, 4)]):
        of_tenant, of_project, of_key = limits
        tenant = world.add_tenant(f"t{number}", requests_per_minute=of_tenant)
        project = Project.objects.create(tenant=tenant, slug="app", name="App", requests_per_minute=of_project)
        _, secret = world.add_key(project, requests_per_minute=of_key)
        pair.wait_known(secret)
        answers, seconds = pair.at_once(12, "Hello", secret=secret, max_tokens=1)
        assert 4 <= statuses(answers)[200] <= 4 + math.ceil(seconds / 15), limits


def test_it_shares_a_tenant_s_limit_between_its_keys_and_with_no_other_tenant(pair: Pair) -> None:
    world = pair.place.world
    secrets: list[str] = []
    for name in ("acme2", "globex2"):
        tenant: Tenant = world.add_tenant(name, requests_per_minute=5)
        for slug in ("one", "two"):
            project = Project.objects.create(tenant=tenant, slug=slug, name=slug)
            secrets.append(world.add_key(project)[1])
    pair.wait_known(secrets[-1])
    ok: list[int] = []
    for secret in secrets:
        answers, _ = pair.at_once(8, "Hello", secret=secret, max_tokens=1)
        ok.append(statuses(answers)[200])
    assert 5 <= ok[0] + ok[1] <= 6
    assert 5 <= ok[2] + ok[3] <= 6
