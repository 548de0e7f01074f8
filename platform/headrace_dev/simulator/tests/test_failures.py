"""Refusals, breaks and silence."""

import json
import time

from headrace_dev.simulator.process import ScriptedUpstream
from headrace_dev.simulator.tests.calling import Call, body, events, fetch, said


def test_it_refuses_with_the_status_told(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(status=429, body={"error": {"message": "later"}}, retry_after="7")) as call:
        assert json.loads(call.read()) == {"error": {"message": "later"}}
    assert (call.status, call.headers["retry-after"]) == (429, "7")
    with Call(upstream, body(html=True, pad=200_000)) as call:
        assert len(call.read()) > 200_000
    assert (call.status, call.headers["content-type"]) == (200, "text/html")


def test_it_has_a_full_queue_as_sglang_has(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(queue_full=True)) as call:
        first, last = events(call.read())
    assert (call.status, first["error"]["code"], last) == (200, 503, "[DONE]")
    with Call(upstream, body(stream=False, queue_full=True)) as call:
        assert json.loads(call.read())["message"] == "The request queue is full."
    assert call.status == 503
    assert upstream.stats()["refused"] == 2


def test_it_breaks_off_with_an_error_event(upstream: ScriptedUpstream) -> None:
    chunks = events(fetch(upstream, body(error_event_after=2, pad=1000)))
    assert said(chunks) == "tok0 tok1 "
    assert len(chunks[-2]["error"]["message"]) > 1000
    assert chunks[-1] == "[DONE]"
    stats = upstream.stats()
    assert (stats["failed"], stats["tokens_sent"]) == (1, 2)


def test_it_drops_the_connection(upstream: ScriptedUpstream) -> None:
    for drop in ("reset", "close"):
        for stream in (True, False):
            with Call(upstream, body(stream=stream, drop_after=2, drop=drop)) as call:
                data = b"".join(call.segments()) if not stream or drop == "close" else b""
                upstream.wait_until_idle()  # it is the upstream that leaves, not we
            assert not call.whole
            assert said(events(data)) in {"tok0 tok1 ", ""}
    assert upstream.stats()["dropped"] == 4


def test_it_drops_the_connection_without_a_byte(upstream: ScriptedUpstream) -> None:
    for stream in (True, False):
        with Call(upstream, body(stream=stream, no_answer=True, drop="close")) as call:
            assert call.read() == b""
        assert call.status == 0
    assert upstream.stats()["dropped"] == 2


def test_it_falls_silent_until_the_client_leaves(upstream: ScriptedUpstream) -> None:
    for silent in ({"stall_after": 1}, {"stall_after": 1, "ping_ms": 5}, {"headers_only": True}, {"first_ms": 60_000}):
        with Call(upstream, body(**silent)):
            time.sleep(0.1)
            assert upstream.stats()["open"] == 1
        assert upstream.wait_until_idle() < 1
    assert upstream.stats()["closed_by_client"] == 4
    assert upstream.stats()["tokens_sent"] == 2


def test_it_follows_queued_scripts_then_the_default(upstream: ScriptedUpstream) -> None:
    upstream.script(tokens=1)
    upstream.scripts({"status": 503}, {"tokens": 2})
    plain = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    assert json.loads(fetch(upstream, plain))["code"] == 503
    assert said(events(fetch(upstream, plain))) == "tok0 tok1 "
    assert said(events(fetch(upstream, plain))) == "tok0 "
    assert said(events(fetch(upstream, body(tokens=3)))) == "tok0 tok1 tok2 "
