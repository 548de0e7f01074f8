"""What only SGLang has: salted prefix caches, a bounded queue."""

import asyncio
from typing import Any

import httpx
import pytest
import redis

from headrace_dev.testing.engine import Engine
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest, drained, records
from tenants.models import Project

LONG = "The headrace leads water to the wheel. " * 24


pytestmark = [
    pytest.mark.sglang,
    pytest.mark.parametrize("engine", ["sglang"], indirect=True, scope="package"),
]


def post(web: WebProcess, world: World, body: dict[str, Any], secret: str | None = None) -> httpx.Response:
    url = f"{web.url}/v1/chat/completions"
    return httpx.post(url, headers=world.headers(secret), json=body, timeout=120, trust_env=False)


def cached(web: WebProcess, world: World, secret: str | None = None) -> int:
    answer = post(web, world, world.body(LONG, max_tokens=2, temperature=0), secret)
    assert answer.status_code == 200, answer.text
    tokens: int = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    return tokens


def test_it_keeps_a_tenants_prefix_warm_and_to_itself(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    other = world.add_tenant("globex")
    _, secret = world.add_key(Project.objects.create(tenant=other, slug="app", name="App"))
    world.wait_known(web, secret=secret)
    assert cached(web, world) == 0
    warm = cached(web, world)
    assert warm > 150
    assert cached(web, world, secret) == 0  # the other tenant's salt
    at_rest(valkey)
    drained(valkey)
    assert [record.cached_input_tokens for record in records(world)] == [0, warm, 0]


def test_it_counts_two_choices_once_each_and_the_prompt_once(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    for stream in (False, True):
        answer = post(web, world, world.body("Tell me of a river.", n=2, max_tokens=5, temperature=1.0, stream=stream))
        assert answer.status_code == 200, answer.text
    at_rest(valkey)
    drained(valkey)
    whole, streamed = records(world)
    assert whole.input_tokens == streamed.input_tokens
    for record in (whole, streamed):
        assert record.usage_source == "reported"
        assert record.output_tokens == 10  # both choices, and no more


async def fill(web: WebProcess, world: World) -> list[httpx.Response]:
    """Twice as many requests as the engine runs and queues, streamed and not."""

    async def ask(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
        body = world.body("Tell me a long story.", max_tokens=40, **fields)
        return await client.post(f"{web.url}/v1/chat/completions", headers=world.headers(), json=body)

    async with httpx.AsyncClient(timeout=120, trust_env=False, limits=httpx.Limits(max_connections=None)) as client:
        return await asyncio.gather(*(ask(client, stream=number % 2 == 0) for number in range(24)))


def test_it_tells_a_full_queue_by_its_status(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    answers = asyncio.run(fill(web, world))
    refused = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers} == {200, 503}
    assert {answer.json()["error"]["code"] for answer in refused} == {"no_capacity"}
    assert {answer.headers["content-type"] for answer in refused} == {"application/json"}
    assert any("stream" in answer.headers["content-type"] for answer in answers if answer.status_code == 200)
    at_rest(valkey)
    drained(valkey)
    failed = [record for record in records(world) if record.status == "error"]
    assert len(failed) == len(refused)
    assert {(record.input_tokens, record.output_tokens) for record in failed} == {(0, 0)}
