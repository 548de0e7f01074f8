"""Connections to an upstream: none, a slow one, a stale one; and what goes out on them."""

import json
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from headrace.gateway.tests.calling import Answer, Place, record
from headrace.stack import ports
from headrace_dev.testing.upstream import ScriptedUpstream


@pytest.fixture(scope="module")
def deaf() -> Iterator[str]:
    """An address that takes no connection: its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}"
        for one in waiting:
            one.close()


@pytest.fixture(scope="module")
def models(place: Place, deaf: str) -> dict[str, str]:
    with ports.reserve() as holder:
        closed = ports.number(holder)
    made = {
        "refused": place.add_model(url=f"http://127.0.0.1:{closed}"),
        "unknown host": place.add_model(url="http://engine.invalid:30000"),
        "deaf": place.add_model(url=deaf, connect_timeout=0.3),
        "deaf provider": place.add_model(url=deaf, provider=True, connect_timeout=30),
    }
    place.wait_known(*made.values())
    return made


def failed(answer: Answer) -> None:
    assert "127.0.0.1" not in answer.raw.decode()
    assert "invalid:" not in answer.raw.decode()
    assert (answer.record["status"], answer.record["input_tokens"], answer.record["output_tokens"]) == ("error", 0, 0)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("kind", ["refused", "unknown host"])
def test_it_says_that_the_engine_cannot_be_reached(
    place: Place, models: dict[str, str], kind: str, stream: bool
) -> None:
    answer = place.chat(model=models[kind], stream=stream)
    assert (answer.status, answer.error["code"]) == (502, "upstream_error")
    failed(answer)


def test_it_bills_nothing_that_never_went_out(place: Place, models: dict[str, str]) -> None:
    """A provider goes on with what a client gave up, and charges for it: not with what it never got."""
    sent = place.world.headers() | {"x-request-id": "never-went-out"}
    body = place.body(model=models["deaf provider"], max_tokens=500)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{place.web.url}/v1/chat/completions", json=body, headers=sent, timeout=0.7, trust_env=False)
    found = record(place.web, "never-went-out")
    assert (found["status"], found["input_tokens"], found["output_tokens"]) == ("cancelled", 0, 0)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_gives_up_connecting_in_time(place: Place, models: dict[str, str], stream: bool) -> None:
    began = time.monotonic()
    answer = place.chat(model=models["deaf"], stream=stream)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0.25 < time.monotonic() - began < 5
    failed(answer)


def test_it_sends_a_chat_again_when_its_connection_was_stale(place: Place, engine: ScriptedUpstream) -> None:
    engine.reset()
    place.chat()
    engine.scripts({"no_answer": True})
    answer = place.chat()
    assert (answer.status, answer.text) == (200, "tok0 tok1 tok2 tok3 tok4 ")
    rids = [request["rid"] for request in engine.requests()]
    assert len(set(rids)) == 3, "under a new name"
    assert answer.record["upstream_id"] == rids[-1]


def test_it_sends_a_chat_once_on_a_fresh_connection(place: Place, engine: ScriptedUpstream) -> None:
    hits: list[int] = []
    while 1 not in hits and len(hits) < 20:  # kept-alive connections of earlier tests go first
        engine.reset()
        answer = place.scripted(no_answer=True)
        assert (answer.status, answer.error["code"]) == (502, "upstream_error")
        failed(answer)
        hits.append(len(engine.requests()))
    assert hits[-1] == 1
    assert set(hits) <= {1, 2}


def test_it_sends_nothing_of_the_client_and_no_cookie(place: Place, engine: ScriptedUpstream) -> None:
    engine.reset()
    place.scripted(status=503, headers={"set-cookie": "session=of-another-tenant; Path=/"})
    sent = {"cookie": "a=b", "x-secret": "s", "x-request-id": "mine", "user-agent": "app", "accept-encoding": "gzip"}
    place.chat(headers=sent)
    headers = engine.requests()[-1]["headers"]
    assert set(headers) <= {
        "host",
        "accept",
        "connection",
        "user-agent",
        "accept-encoding",
        "content-type",
        "content-length",
        "x-custom-labels",
    }
    assert json.loads(headers["x-custom-labels"]) == {"tenant": place.world.tenant.slug}
    assert headers["accept-encoding"] == "identity"
    assert headers["user-agent"] == "headrace"
