"""While an upstream says nothing: headers and comments for the client, and deadlines that end it."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import DefaultHttpxClient, InternalServerError, OpenAI

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.upstream import ScriptedUpstream, prompt

STREAM = {"stream": True}


@pytest.fixture(scope="module")
def models(place: Place) -> dict[str, str]:
    made = {
        "first_byte": place.add_model(first_byte_timeout=0.5),
        "between_events": place.add_model(between_events_timeout=0.5),
        "assembled": place.add_model(
            url=f"{place.upstream.url}/", engine="llamacpp", between_events_timeout=0.5, total_timeout=20
        ),
        "total": place.add_model(total_timeout=0.8),
        "hosted": place.add_model(total_timeout=0.8, provider=True),
    }
    place.wait_known(*made.values())
    return made


def timed(ask: Callable[[], Answer]) -> tuple[Answer, float]:
    began = time.monotonic()
    return ask(), time.monotonic() - began


@pytest.mark.parametrize(
    "script",
    [
        {"headers_only": True},
        {"headers_only": True, "ping_ms": 50},
        {"first_ms": 20_000},
        {"stall_after": 0},  # a role, and no more
        {"stall_after": 0, "ping_ms": 50, "ping": 'data: {"choices":[]}'},
        {"status": 400, "first_ms": 20_000},
    ],
)
def test_it_waits_so_long_for_the_first_byte(
    place: Place, engine: ScriptedUpstream, models: dict[str, str], script: dict[str, Any]
) -> None:
    answer, seconds = timed(lambda: place.scripted(fields=STREAM | {"model": models["first_byte"]}, **script))
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0.5 <= seconds < 3
    assert (answer.record["status"], answer.record["output_tokens"], answer.record["input_tokens"]) == ("error", 0, 0)
    engine.wait_until_idle()


@pytest.mark.parametrize("ping", [{}, {"ping_ms": 50}, {"ping_ms": 50, "ping": "data: : keepalive"}])
def test_it_waits_so_long_between_events(
    place: Place, engine: ScriptedUpstream, models: dict[str, str], ping: dict[str, Any]
) -> None:
    fields = STREAM | {"model": models["between_events"]}
    answer, seconds = timed(lambda: place.scripted(fields=fields, stall_after=2, **ping))
    assert (answer.status, answer.error["code"], answer.text) == (200, "upstream_timeout", "tok0 tok1 ")
    assert not answer.is_done
    assert 0.5 <= seconds < 3
    assert (answer.record["status"], answer.record["output_tokens"]) == ("error", 2)
    engine.wait_until_idle()


def test_it_waits_so_long_between_the_events_of_which_it_makes_a_whole_answer(
    place: Place, engine: ScriptedUpstream, models: dict[str, str]
) -> None:
    answer, seconds = timed(lambda: place.scripted(fields={"model": models["assembled"]}, stall_after=2))
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0.5 <= seconds < 5
    engine.wait_until_idle()


def test_it_waits_so_long_in_all(place: Place, engine: ScriptedUpstream, models: dict[str, str]) -> None:
    fields = STREAM | {"model": models["total"]}
    answer, seconds = timed(lambda: place.scripted(fields=fields, tokens=1000, interval_ms=20))
    assert (answer.status, answer.error["code"]) == (200, "upstream_timeout")
    assert 0.8 <= seconds < 4
    delivered = answer.text.count("tok")
    assert answer.record["output_tokens"] == delivered > 0
    engine.wait_until_idle()


def test_it_waits_so_long_for_a_whole_answer_and_bills_what_the_engine_did(
    place: Place, engine: ScriptedUpstream, models: dict[str, str]
) -> None:
    answer, seconds = timed(
        lambda: place.scripted(fields={"model": models["total"]}, tokens=1000, interval_ms=20, usage="asked")
    )
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0.8 <= seconds < 5
    engine.wait_until_idle()
    assert answer.record["output_tokens"] >= engine.stats()["tokens_by_rid"][answer.record["upstream_id"]] > 0


def test_it_bills_what_came_from_a_provider_that_nobody_can_stop(place: Place, models: dict[str, str]) -> None:
    """It goes on after we gave up, and what it takes then is not known: that is not for the client to pay."""
    fields = {"model": models["hosted"], "max_tokens": 70}
    answer = place.scripted(fields=fields, tokens=60, interval_ms=50, ignore_close=True, ignore_abort=True)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0 < answer.record["output_tokens"] < 60
    assert answer.record["usage_source"] == "estimated"
    place.upstream.reset()


def test_it_bills_by_time_a_provider_that_shows_nothing_before_the_end(place: Place, models: dict[str, str]) -> None:
    """100 tokens a second, no more than was allowed."""
    refusal = {"error": {"message": "Your organization must be verified to stream this model.", "param": "stream"}}
    place.upstream.scripts({"status": 400, "body": refusal}, {"tokens": 60, "interval_ms": 50, "ignore_close": True})
    answer = place.chat(model=models["hosted"], max_tokens=70)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert (answer.record["output_tokens"], answer.record["usage_source"]) == (70, "estimated")
    place.upstream.reset()


def test_it_tells_sdks_not_to_buy_again_by_themselves_what_was_billed(place: Place, models: dict[str, str]) -> None:
    """OpenAI's ask twice more after any 5xx."""
    slow = {"tokens": 60, "interval_ms": 50, "ignore_close": True, "ignore_abort": True}
    with DefaultHttpxClient(trust_env=False) as http:
        client = OpenAI(api_key=place.world.secret, base_url=f"{place.web.url}/v1", http_client=http, max_retries=2)
        for script, tries in ((slow, 1), ({"status": 500}, 3)):
            place.upstream.reset()
            messages: Any = [{"role": "user", "content": prompt(**script)}]
            with pytest.raises(InternalServerError):
                client.chat.completions.create(model=models["hosted"], messages=messages, max_tokens=70)
            assert len(place.upstream.requests()) == tries
    place.upstream.reset()


def test_it_sends_headers_and_comments_while_nothing_comes(place: Place, engine: ScriptedUpstream) -> None:
    """The process under test does so after 3 seconds."""
    slow: list[dict[str, Any]] = [
        {"tokens": 1, "first_ms": 3800},
        {"tokens": 1, "interval_ms": 3800},
        {"status": 500, "first_ms": 3800},
        {"queue_full": True, "first_ms": 3800},
        {"tokens": 2, "first_ms": 1000},
    ]
    with ThreadPoolExecutor(len(slow)) as threads:
        late, between, failed, full, soon = threads.map(lambda script: place.scripted(fields=STREAM, **script), slow)
    for answer in (late, between):
        assert (answer.status, answer.text, answer.is_done) == (200, "tok0 ", True)
        assert answer.raw.count(b": keep-alive\n\n") == 1
    assert late.raw.startswith(b": keep-alive\n\n")
    assert between.raw.startswith(b"data: ")
    for answer, code in ((failed, "upstream_error"), (full, "no_capacity")):
        assert (answer.status, answer.error["code"]) == (200, code), answer.raw
        assert answer.raw.startswith(b": keep-alive\n\ndata: ")
        assert not answer.is_done
        assert (answer.record["status"], answer.record["output_tokens"]) == ("error", 0)
    assert b"keep-alive" not in soon.raw


def test_it_sends_headers_that_stop_buffering(place: Place) -> None:
    headers = place.scripted(fields=STREAM, tokens=2).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-length" not in headers
    assert "content-encoding" not in headers
    assert headers["x-headrace-target"] == place.world.name
    assert (headers["x-headrace-fallback"], headers["x-headrace-cache"]) == ("0", "none")
    assert headers["x-headrace-queue-ms"] == "0"
