"""What the upstream counts is what happened."""

import json
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace_dev.simulator.process import ScriptedUpstream
from headrace_dev.simulator.tests.calling import ASKED, Call, body, events, fetch, said


def abort(upstream: ScriptedUpstream, rid: str) -> None:
    with Call(upstream, {"rid": rid}, "/abort_request") as call:
        call.read()
    assert call.status == 200


def open_now(upstream: ScriptedUpstream, count: int) -> None:
    until = time.monotonic() + 5
    while upstream.stats()["open"] != count:
        assert time.monotonic() < until
        time.sleep(0.005)


def test_it_aborts_a_stream_by_rid_prefix(upstream: ScriptedUpstream) -> None:
    abort(upstream, "no-such")
    with Call(upstream, body(tokens=2, stall_after=2, also={**ASKED, "rid": "abcdef"})) as call:
        open_now(upstream, 1)
        time.sleep(0.05)
        abort(upstream, "abc")
        chunks = events(call.read())
    assert call.whole
    assert chunks[-3]["choices"][0]["finish_reason"] == "abort"
    assert chunks[-2]["usage"]["completion_tokens"] == 2
    stats = upstream.stats()
    assert (stats["aborted"], stats["abort_calls"], stats["tokens_by_rid"]) == (1, 2, {"abcdef": 2})


def test_it_aborts_a_whole_answer_with_what_it_generated(upstream: ScriptedUpstream) -> None:
    request = body(stream=False, tokens=500, interval_ms=10, also={"rid": "w"})
    with Call(upstream, request) as call, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call.read)
        time.sleep(0.2)
        abort(upstream, "w")
        whole = json.loads(answer.result(5))
    assert whole["choices"][0]["finish_reason"] == "abort"
    assert 5 <= whole["usage"]["completion_tokens"] <= 100
    assert upstream.stats()["tokens_by_rid"] == {"w": whole["usage"]["completion_tokens"]}


def test_it_does_not_abort_copies_nor_when_told_not_to(upstream: ScriptedUpstream) -> None:
    for told in (
        body(tokens=3, interval_ms=60, also={"rid": "k", "n": 2}),
        body(tokens=3, interval_ms=60, ignore_abort=True, also={"rid": "k"}),
    ):
        with Call(upstream, told) as call:
            open_now(upstream, 1)
            abort(upstream, "k")
            assert said(events(call.read())).startswith("tok0 tok")
    assert upstream.stats()["finished"] == 2


def test_it_refuses_a_second_request_of_a_running_rid(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(stall_after=0, also={"rid": "same"})):
        open_now(upstream, 1)
        with Call(upstream, body(tokens=1, also={"rid": "same"})) as second:
            second.read()
        assert second.status == 400


def test_it_sees_a_stream_close_at_once_and_a_whole_answers_later(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(tokens=2, stall_after=2)):
        open_now(upstream, 1)
    assert upstream.wait_until_idle() < 0.5
    with Call(upstream, body(stream=False, stall_after=0, close_lag_ms=400, also={"rid": "late"})):
        open_now(upstream, 1)
    open_now(upstream, 1)
    time.sleep(0.1)
    assert upstream.stats()["client_closes"] == 2
    abort(upstream, "late")
    assert upstream.wait_until_idle() < 0.3
    stats = upstream.stats()
    assert (stats["closed_by_client"], stats["aborted"]) == (1, 1)


def test_it_generates_on_for_nobody_when_told_to_ignore_the_close(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(tokens=40, interval_ms=5, ignore_close=True)) as call:
        call.head()
        call.segment()
    open_now(upstream, 1)
    upstream.wait_until_idle()
    (entry,) = upstream.requests()
    assert entry["tokens_generated"] == 40
    assert entry["tokens_sent"] < 40
    assert entry["how"] == "closed_by_client"
    assert entry["client_left"] < entry["ended"]


def test_its_counts_are_exact_under_concurrent_random_ends(upstream: ScriptedUpstream) -> None:
    source = random.Random(5)
    read: dict[str, int] = {}
    lock = threading.Lock()

    def one(number: int, leave: bool, tokens: int) -> None:
        rid = f"{number:032d}"
        endless: dict[str, Any] = {"stall_after": tokens} if leave else {}
        with Call(upstream, body(tokens=tokens, interval_ms=1, also={"rid": rid}, **endless)) as call:
            if leave:
                call.head()
                for _ in range(tokens // 2):
                    call.segment()
                return
            count = len(said(events(call.read())).split())
        with lock:
            read[rid] = count

    with ThreadPoolExecutor(32) as pool:
        jobs = [pool.submit(one, i, source.random() < 0.5, source.randint(20, 60)) for i in range(300)]
    for job in jobs:
        job.result()
    upstream.wait_until_idle()
    stats = upstream.stats()
    assert stats["started"] == 300
    assert stats["finished"] == len(read)
    assert stats["finished"] + stats["closed_by_client"] == 300
    assert {rid: stats["tokens_by_rid"][rid] for rid in read} == read
    assert stats["tokens_sent"] == sum(stats["tokens_by_rid"].values())
    assert stats["connections"]["open"] == 1


def test_it_shows_the_requests_it_saw(upstream: ScriptedUpstream) -> None:
    fetch(upstream, body(tokens=1, also={"temperature": 0.5}))
    abort(upstream, "x")
    (entry,) = upstream.requests()
    assert entry["body"]["temperature"] == 0.5
    assert entry["headers"]["host"] == "x"
    assert entry["how"] == "finished"
    assert len(upstream.requests(None)) == 2


def test_a_reset_drops_what_runs(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(stall_after=1)) as call:
        open_now(upstream, 1)
        upstream.reset()
        assert not call.segments() or not call.whole
    assert upstream.stats()["started"] == 0
    assert upstream.stats()["open"] == 0


def test_it_ends_with_the_process_that_started_it() -> None:
    other = ScriptedUpstream()
    assert other.stats()["open"] == 0
    assert other._process.stdin is not None
    other._process.stdin.close()
    assert other._process.wait(5) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", other.port)) != 0
    other.stop()
