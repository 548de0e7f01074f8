"""A simulated replica over HTTP: SGLang's events and figures, on real sockets, four times faster than life."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from headrace_dev.simulator.fleet import prompt
from headrace_dev.simulator.fleet.process import FleetProcess
from headrace_dev.simulator.fleet.tests.toys import profile


@pytest.fixture(scope="module")
def fleet() -> Iterator[FleetProcess]:
    with FleetProcess(profile(kv_tokens=16000, max_running=4, max_queued=2), replicas=2, scale=0.25) as running:
        yield running


@pytest.fixture
async def client(fleet: FleetProcess) -> AsyncIterator[httpx.AsyncClient]:
    fleet.reset()
    async with httpx.AsyncClient(base_url=fleet.urls[0], timeout=20) as opened:
        yield opened


def asking(words: int, tokens: int, **more: Any) -> dict[str, Any]:
    content = "one two six ten " * (words // 4) + prompt.told(tokens)
    return {"model": "simulated", "messages": [{"role": "user", "content": content}], "max_tokens": 5000, **more}


STREAM = {"stream": True, "stream_options": {"include_usage": True}}


async def events(client: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


async def test_it_streams_as_sglang_does(client: httpx.AsyncClient) -> None:
    role, *content, finish, usage = await events(client, asking(400, 12, rid="a" * 32, **STREAM))
    assert role["id"] == "a" * 32
    assert role["choices"][0]["delta"]["role"] == "assistant"
    text = prompt.rendered(asking(400, 12)["messages"])
    assert "".join(each["choices"][0]["delta"]["content"] for each in content) == prompt.answer(text, 12)
    assert len(content) == 12
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"]["prompt_tokens"] == prompt.token_count(text)
    assert usage["usage"]["completion_tokens"] == 12
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}


async def test_it_reports_what_it_found_in_its_cache(client: httpx.AsyncClient, fleet: FleetProcess) -> None:
    cached = []
    for salt in ("acme", "acme", "globex"):
        answer = await client.post("/v1/chat/completions", json=asking(400, 2, cache_salt=salt))
        cached.append(answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"])
    assert cached == [0, 400, 0]
    here, other = fleet.stats()["replicas"]
    assert (here["hit_tokens"], here["finished"], other["requests"]) == (400, 3, 0)


async def test_it_cuts_at_max_tokens_and_gives_running_usage(client: httpx.AsyncClient) -> None:
    options = {"stream": True, "stream_options": {"continuous_usage_stats": True}}
    _, *content, finish = await events(client, asking(40, 50, **options) | {"max_tokens": 3})
    assert [each["usage"]["completion_tokens"] for each in content] == [1, 2, 3]
    assert finish["choices"][0]["finish_reason"] == "length"


async def test_it_frees_what_a_client_that_left_held(client: httpx.AsyncClient, fleet: FleetProcess) -> None:
    async with client.stream("POST", "/v1/chat/completions", json=asking(40, 4000, **STREAM)) as answer:
        async for _ in answer.aiter_bytes():
            break
    for _ in range(200):
        if fleet.stats()["replicas"][0]["aborted"] == 1:
            break
        await asyncio.sleep(0.02)
    load = (await client.get("/v1/loads?include=core")).json()["loads"][0]
    assert (load["num_running_reqs"], load["num_used_tokens"]) == (0, 0)


async def test_it_ends_what_is_aborted_by_rid(client: httpx.AsyncClient) -> None:
    asked = asyncio.create_task(events(client, asking(40, 4000, rid="b" * 32, **STREAM)))
    await asyncio.sleep(0.2)
    assert (await client.post("/abort_request", json={"rid": "b" * 32})).status_code == 200
    *_, finish, usage = await asyncio.wait_for(asked, 5)
    assert finish["choices"][0]["finish_reason"] == "abort"
    assert 0 < usage["usage"]["completion_tokens"] < 4000


async def waiting(client: httpx.AsyncClient) -> int:
    """How many the replica says it lets wait, once that has come to rest."""
    before = -1
    while True:
        now = int((await client.get("/v1/loads")).json()["loads"][0]["num_waiting_reqs"])
        if now == before:
            return now
        before = now
        await asyncio.sleep(0.1)


async def test_it_refuses_as_sglang_does(client: httpx.AsyncClient) -> None:
    too_long = await client.post("/v1/chat/completions", json=asking(20000, 1, stream=True))
    assert too_long.status_code == 400
    assert "longer than" in too_long.json()["message"]
    assert (await client.post("/v1/chat/completions", content=b"{")).status_code == 400
    assert (await client.get("/nothing")).status_code == 404
    running: list[asyncio.Task[Any]] = []
    while await waiting(client) < 2:  # how many run at once is the scheduler's own guess of what they will need
        assert len(running) < 6
        running.append(asyncio.create_task(events(client, asking(40, 3000, **STREAM))))
    whole = await client.post("/v1/chat/completions", json=asking(40, 1))
    assert (whole.status_code, whole.json()["message"]) == (503, "The request queue is full.")
    (error,) = await events(client, asking(40, 1, **STREAM))
    assert error["error"]["code"] == 503
    loads = (await client.get("/v1/loads")).json()["loads"][0]
    assert (loads["num_running_reqs"] <= 4, loads["num_waiting_reqs"]) == (True, 2)
    metrics = (await client.get("/metrics")).text
    assert 'sglang:num_queue_reqs{model_name="simulated"} 2.0' in metrics
    await client.post("/abort_request", json={"abort_all": True})
    await asyncio.gather(*running)


async def test_it_takes_the_time_its_scheduler_says(client: httpx.AsyncClient, fleet: FleetProcess) -> None:
    """1,000 prompt tokens and 49 steps of about 12 ms: 0.7 s, a quarter of it here."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await events(client, asking(1000, 50, **STREAM))
    assert 0.16 < loop.time() - began < 1.5
    assert fleet.stats()["replicas"][0]["busy_seconds"] == pytest.approx(0.101 + 49 * 0.0120, rel=0.05)
    assert (await client.get("/health")).status_code == 200
