"""Segments, line ends, comments and junk, as told."""

import base64
import random

import pytest

from headrace_dev.simulator.process import ScriptedUpstream
from headrace_dev.simulator.tests.calling import Call, body, events, fetch, said


def test_it_writes_segments_of_the_sizes_told(upstream: ScriptedUpstream) -> None:
    plain = fetch(upstream, body(tokens=4, also={"rid": "r"}))
    with Call(upstream, body(tokens=4, split=[3, 500], also={"rid": "r"})) as call:
        segments = call.segments()
    assert [len(s) for s in segments[:2]] == [3, 500]
    assert len(b"".join(segments)) == len(plain)
    with Call(upstream, body(text="你好🌍é", split_every=1)) as call:
        segments = call.segments()
    assert {len(s) for s in segments} == {1}


def test_it_writes_random_segments_from_a_seed(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(tokens=4, split=11, split_max=9)) as call:
        segments = call.segments()
    source = random.Random(11)
    assert [len(s) for s in segments[:-1]] == [source.randint(1, 9) for _ in segments[:-1]]
    assert said(events(b"".join(segments))) == "tok0 tok1 tok2 tok3 "


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_it_uses_the_line_ends_told(upstream: ScriptedUpstream, eol: str) -> None:
    data = fetch(upstream, body(tokens=2, eol=eol))
    assert data.endswith(f"data: [DONE]{eol}{eol}".encode())
    assert data.count(b"\n") + data.count(b"\r") == data.count(eol.encode()) * len(eol)
    assert said(events(data)) == "tok0 tok1 "


def test_it_ends_without_line_end_done_or_reason(upstream: ScriptedUpstream) -> None:
    data = fetch(upstream, body(tokens=2, done=False, end_newline=False, usage="final"))
    assert data.endswith(b"}")
    assert "usage" in events(data)[-1]
    bare = events(fetch(upstream, body(tokens=2, done=False, finish_reason=None)))
    assert [c["choices"][0]["finish_reason"] for c in bare] == [None, None, None]
    assert events(fetch(upstream, body(tokens=0, role_chunk=False, finish_reason=None))) == ["[DONE]"]


def test_it_sends_junk_and_comments(upstream: ScriptedUpstream) -> None:
    junk = [": PROCESSING", "data: : keepalive", "data:"]
    data = fetch(upstream, body(tokens=2, junk=junk, junk_every=1))
    assert data.startswith(b": PROCESSING\n\ndata: : keepalive\n\ndata:\n\ndata: {")
    assert data.count(b"data: : keepalive") == 3
    pinged = fetch(upstream, body(tokens=2, interval_ms=60, ping_ms=10))
    assert 3 <= pinged.count(b": ping\n\n") <= 12


def test_it_sends_raw_segments_as_they_are(upstream: ScriptedUpstream) -> None:
    pieces = [b'data: {"a":1,\r', b'\ndata: "b":2}\r', b"\n\r", b"\n"]
    with Call(upstream, body(raw=[base64.b64encode(p).decode() for p in pieces], split_ms=2)) as call:
        assert call.segments() == pieces
    assert call.whole


def test_it_sends_one_big_event(upstream: ScriptedUpstream) -> None:
    chunks = events(fetch(upstream, body(tokens=2, big_event=300_000)))
    assert len(chunks[1]["choices"][0]["delta"]["content"]) == 300_000
