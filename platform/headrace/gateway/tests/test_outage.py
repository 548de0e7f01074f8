"""Upstreams that go on failing: left alone for a while, tried by one request, and never in a storm of retries."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import httpx
import pytest
import redis

from engines.load.figures import State
from engines.models import Provider
from headrace.gateway.tests.busy import capacity
from headrace.gateway.tests.calling import Hosted, Place
from headrace_dev.testing.clients import Caller
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from routing.models import Target
from tenants.models import Project

TOKENS = "tok0 tok1 tok2 tok3 tok4 "
FAILURES = 5  # the breaker's default


@pytest.fixture(scope="module")
def web(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    """A web process as it comes, its breakers at work."""
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log")
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def other() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as other:
        yield other


@pytest.fixture(scope="module")
def spot(web: WebProcess, engine: ScriptedUpstream) -> Place:
    return Place(web, engine)


@pytest.fixture
def bad(spot: Place, other: ScriptedUpstream) -> ScriptedUpstream:
    spot.upstream.reset()
    other.reset()
    return spot.upstream


def hits(upstream: ScriptedUpstream) -> int:
    return len(upstream.requests())


def all_at_once(place: Place, number: int, **fields: Any) -> list[httpx.Response]:
    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            url, headers = f"{place.web.url}/v1/chat/completions", place.world.headers()
            asked = (client.post(url, json=place.body(**fields), headers=headers) for _ in range(number))
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def key_of_another(place: Place) -> str:
    """A key of a tenant that has asked for nothing yet, known to the web process."""
    tenant = place.world.add_tenant(token_hex(4))
    _, secret = place.world.add_key(Project.objects.create(tenant=tenant, slug="app", name="app"))
    place.wait_known(secret=secret)
    return secret


def test_it_leaves_a_failing_replica_alone_and_tries_it_again_after_a_while(
    spot: Place, bad: ScriptedUpstream, other: ScriptedUpstream
) -> None:
    bad.script(status=500)
    model = spot.add_route([bad.url], [other.url])
    answers = [spot.chat(model=model, stream=True) for _ in range(12)]
    assert [answer.text for answer in answers] == [TOKENS] * 12
    assert [answer.record["fallback"] for answer in answers] == [1] * FAILURES + [0] * (12 - FAILURES)
    assert hits(bad) == FAILURES
    bad.script()
    eventually(lambda: spot.chat(model=model).record["target"] == f"{model.lower()}-0", 5)
    assert hits(bad) == FAILURES + 1


def test_it_stays_away_for_as_long_as_a_provider_says(spot: Place, bad: ScriptedUpstream) -> None:
    bad.script(status=429, retry_after="2")
    model = spot.add_route(Hosted(bad.url))
    first = spot.chat(model=model)
    assert (first.status, first.error["code"], first.headers["retry-after"]) == (503, "no_capacity", "2")
    began = time.monotonic()
    refused = [spot.chat(model=model, stream=number % 2 == 0) for number in range(20)]
    assert time.monotonic() - began < 1.5, "too slow to say anything"
    assert {(answer.status, answer.error["code"]) for answer in refused} == {(503, "no_capacity")}
    assert {answer.headers["retry-after"] for answer in refused} <= {"1", "2"}
    assert hits(bad) == 1
    bad.script()
    time.sleep(max(0.0, began + 2.1 - time.monotonic()))
    assert spot.chat(model=model).status == 200


@pytest.mark.parametrize("header", [{"retry-after-ms": "30000"}, {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}])
def test_it_understands_every_form_of_waiting(spot: Place, bad: ScriptedUpstream, header: dict[str, str]) -> None:
    bad.script(status=503, headers=header)
    model = spot.add_route(Hosted(bad.url))
    waits = [int(spot.chat(model=model).headers["retry-after"]) for _ in range(3)]
    assert all(29 <= wait <= 60 for wait in waits), waits
    assert hits(bad) == 1


@pytest.mark.parametrize(
    "script", [{"status": 429, "retry_after": "30"}, {"status": 404}], ids=["limited", "not served"]
)
def test_it_asks_a_provider_for_another_model_than_the_one_it_keeps_back(
    spot: Place, bad: ScriptedUpstream, script: dict[str, Any]
) -> None:
    """Providers limit each model by itself; and a model that is misspelt is no failure of the others."""
    model, other = spot.add_route(Hosted(bad.url)), spot.add_route(Hosted(bad.url))
    provider = Target.objects.get(route_id=model).provider
    assert provider is not None
    Target.objects.filter(route_id=other).update(provider=provider, upstream_model="smaller")
    spot.world.wait_followed()
    bad.script(**script)
    for _ in range(FAILURES):
        spot.chat(model=model)
    left_alone = hits(bad)
    bad.script()
    assert spot.chat(model=model).status == 503
    assert hits(bad) == left_alone
    assert spot.chat(model=other).status == 200
    assert spot.metric("headrace_breaker_state", replica=provider.name) in {1, 2}  # open, or its pause is over


def test_it_does_not_ask_a_provider_again_that_wants_money(
    spot: Place, bad: ScriptedUpstream, other: ScriptedUpstream
) -> None:
    told = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    bad.script(status=429, retry_after="1", body=told)
    model = spot.add_route(Hosted(bad.url), Hosted(other.url))
    answers = [spot.chat(model=model) for _ in range(3)]
    assert [answer.text for answer in answers] == [TOKENS] * 3
    assert [answer.record["fallback"] for answer in answers] == [1, 0, 0]
    assert "AccountRefused" in answers[0].record["labels"]["attempts"]
    assert hits(bad) == 1


def test_it_has_one_request_at_a_time_try_it_again(spot: Place, bad: ScriptedUpstream) -> None:
    bad.script(status=500)
    model = spot.add_route([bad.url])
    assert {spot.chat(model=model).status for _ in range(FAILURES)} == {502}
    assert spot.chat(model=model).status == 503
    bad.script(first_ms=700)
    time.sleep(1.3)
    answers = all_at_once(spot, 20, model=model)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 503: 19}
    assert hits(bad) == FAILURES + 1
    assert Counter(answer.status_code for answer in all_at_once(spot, 10, model=model)) == {200: 10}


def test_the_others_of_a_burst_that_comes_as_it_tries_again_cost_no_retries(
    spot: Place, bad: ScriptedUpstream, other: ScriptedUpstream
) -> None:
    """All were to go to the one that may be tried again, and only one may: nobody was asked for the rest."""
    bad.script(status=500)
    model = spot.add_route([bad.url], [other.url])
    assert {spot.chat(model=model).status for _ in range(FAILURES)} == {200}
    bad.script(first_ms=1000)
    time.sleep(1.3)
    answers = all_at_once(spot, 40, model=model)
    assert Counter(answer.status_code for answer in answers) == {200: 40}
    assert Counter(answer.headers["x-headrace-target"][-1] for answer in answers) == {"0": 1, "1": 39}
    assert hits(bad) == FAILURES + 1


def test_it_does_not_wait_out_its_pause_once_an_engine_serves_again(
    spot: Place, bad: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    """Its pause is 8 s by then, give or take a fifth."""
    bad.script(status=500)
    model = spot.add_route([bad.url])
    replica = f"{model.lower()}-0/r0"
    with capacity(valkey, 100_000, replica) as states:
        while hits(bad) < FAILURES + 3:
            spot.chat(model=model)
            time.sleep(0.1)
        states[replica] = State.DOWN
        time.sleep(1.2)  # every process has read it by then
        assert spot.chat(model=model).status == 503
        bad.script()
        states[replica] = State.READY
        eventually(lambda: spot.chat(model=model).status == 200, 4)


def test_it_lets_no_one_shut_an_upstream_for_others(spot: Place, bad: ScriptedUpstream) -> None:
    """Requests that are refused for what they are, prompts that are too long."""
    model = spot.add_route([bad.url])
    for _ in range(3):
        for script in (
            {"status": 400, "body": {"message": "Invalid image."}},
            {"status": 400, "body": {"message": "The input is longer than the model's context length."}},
            {"status": 413},
            {"status": 422},
        ):
            assert spot.chat(prompt(**script), model=model).status == 400
    assert spot.chat(model=model).status == 200


def test_it_does_not_count_long_answers_that_run_out_of_time(spot: Place, bad: ScriptedUpstream) -> None:
    bad.script(tokens=1000, interval_ms=20)
    model = spot.add_route([bad.url], total_timeout=0.5)
    for _ in range(FAILURES):
        assert spot.chat(model=model, stream=True).error["code"] == "upstream_timeout"
    bad.script()
    assert spot.chat(model=model).status == 200


def test_it_does_not_count_clients_that_leave(spot: Place, bad: ScriptedUpstream) -> None:
    model = spot.add_route([bad.url])

    async def come_and_go() -> None:
        for _ in range(2 * FAILURES):
            caller = await Caller.to(spot.web.url)
            await caller.ask(spot.world, stream=True, content=prompt(stall_after=0), model=model)
            await asyncio.sleep(0.1)
            await caller.leave()

    asyncio.run(come_and_go())
    bad.wait_until_idle()
    assert spot.chat(model=model).status == 200


def test_it_leaves_alone_one_that_answers_its_probes_and_nothing_else(
    spot: Place, bad: ScriptedUpstream, other: ScriptedUpstream
) -> None:
    """A tenant passes one over that was silent to it; what is silent to many is left alone by all."""
    bad.script(headers_only=True)
    model = spot.add_route([bad.url], [other.url], first_byte_timeout=0.3)
    secrets = [key_of_another(spot) for _ in range(FAILURES + 3)]
    answers = [spot.chat(model=model, stream=True, secret=secret) for secret in secrets]
    assert [answer.text for answer in answers] == [TOKENS] * len(answers)
    assert hits(bad) == FAILURES


def test_it_tells_the_state_of_its_breakers(spot: Place, bad: ScriptedUpstream) -> None:
    bad.script(status=429, retry_after="60")
    model = spot.add_route(Hosted(bad.url))
    spot.chat(model=model)
    text = httpx.get(f"{spot.web.url}/metrics", trust_env=False).text
    assert f'headrace_breaker_state{{replica="{model.lower()}-0"}} 2.0' in text


def test_it_asks_at_once_what_an_operator_put_right(
    spot: Place, bad: ScriptedUpstream, other: ScriptedUpstream
) -> None:
    """It is told to stay away for a minute: from the old address, not from the new one."""
    bad.script(status=401)
    model = spot.add_route(Hosted(bad.url))
    assert [spot.chat(model=model).status for _ in range(2)] == [502, 503]
    provider = f"{model.lower()}-0"
    Provider.objects.filter(pk=provider).update(base_url=other.url)
    eventually(lambda: spot.chat(model=model).status == 200, 3)
    assert hits(bad) == 1
    assert spot.metric("headrace_breaker_state", replica=provider) == 0


def test_it_makes_no_storm_of_an_outage(place: Place, other: ScriptedUpstream) -> None:
    """Without breakers: the retry budget alone bounds what upstreams get."""
    place.upstream.reset()
    other.reset()
    place.upstream.script(status=503)
    other.script(status=503)
    model = place.add_route([place.upstream.url], [other.url])
    answers = [answer for _ in range(3) for answer in all_at_once(place, 50, model=model)]
    assert {answer.status_code for answer in answers} == {503}
    assert hits(place.upstream) == 150
    assert 10 <= hits(other) <= 15


def test_it_ends_a_stream_whose_replica_is_killed_and_goes_on_with_the_next(spot: Place, bad: ScriptedUpstream) -> None:
    with ScriptedUpstream(tokens=500, interval_ms=20) as doomed:
        model = spot.add_route([doomed.url], [bad.url])

        async def be_cut_off() -> None:
            callers = [await Caller.to(spot.web.url) for _ in range(3)]
            for caller in callers:
                await caller.ask(spot.world, stream=True, model=model, max_tokens=500)
                assert (await caller.head()).status == 200
                for _ in range(5):
                    await caller.event()
            doomed.kill()
            for caller in callers:
                while not (event := await caller.event()).startswith('{"error":'):
                    assert event != "[DONE]"
                assert json.loads(event)["error"]["code"] == "upstream_disconnected"
                await caller.leave()

        asyncio.run(be_cut_off())
        answers = [spot.chat(model=model, stream=True) for _ in range(5)]
    assert [answer.text for answer in answers] == [TOKENS] * 5
    ended = [record for record in spot.web.records() if record["model"] == model and record["status"] == "error"]
    assert len(ended) == 3
    for record in ended:
        assert 4 <= record["output_tokens"] < 500
        assert (record["fallback"], record["usage_source"]) == (0, "reported")
