"""Hundreds of tiny streams at once, each cut differently: each whole, each with its usage, each on record once."""

import asyncio
import hashlib
import json
from collections.abc import Iterator

import aiohttp
import pytest

from headrace.gateway.tests.calling import Place, records
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess

STREAMS, AT_ONCE = 600, 30


@pytest.fixture(scope="module")
def renewing(committed: None, engine: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A web process that renews its leases twelve times a second: renewals meet settlements."""
    web = WebProcess(tmp_path_factory.mktemp("web") / "web.log", HEADRACE_LEASE_SECONDS="0.5")
    try:
        yield Place(web.wait_ready(), engine)
    finally:
        web.stop()


async def ask_all(place: Place) -> list[bytes]:
    """The bodies of all streams, without what is each one's own."""
    turn = asyncio.Semaphore(AT_ONCE)
    url = f"{place.web.url}/v1/chat/completions"

    async def one(seed: int) -> bytes:
        script = prompt(tokens=3, split=seed, prompt_tokens=30, cached_tokens=3)
        body = place.body(script, stream=True, stream_options={"include_usage": True})
        async with turn, http.post(url, json=body, headers=place.world.headers()) as answer:
            assert answer.status == 200
            events = (await answer.read()).decode().splitlines()
        assert events[-2:] == ["data: [DONE]", ""], events
        told = [json.loads(line[6:]) for line in events if line.startswith("data: {")]
        return json.dumps([[event["choices"], event["usage"]] for event in told]).encode()

    async with aiohttp.ClientSession() as http:
        return await asyncio.gather(*(one(seed) for seed in range(STREAMS)))


def test_it_ends_and_bills_every_one_of_them(renewing: Place) -> None:
    bodies = asyncio.run(ask_all(renewing))
    assert len(bodies) == STREAMS
    assert len({hashlib.sha256(body).digest() for body in bodies}) == 1
    found = records(renewing.web, renewing.world.model)
    assert len({record["request_id"] for record in found}) == len(found) == STREAMS
    assert {(r["status"], r["input_tokens"], r["output_tokens"], r["usage_source"]) for r in found} == {
        ("ok", 30, 3, "reported")
    }
    assert renewing.upstream.stats()["open"] == 0
