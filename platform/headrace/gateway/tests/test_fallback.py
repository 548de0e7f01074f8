"""Before the first byte, what one replica fails at is asked of the next, and then of the next target; once each."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headrace.gateway.tests.calling import Answer, Hosted, Place
from headrace.stack import ports
from headrace_dev.testing.invariants import settled
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.world import World
from routing.models import Target

STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
TOKENS = "tok0 tok1 tok2 tok3 tok4 "


@pytest.fixture(scope="module")
def others() -> Iterator[list[ScriptedUpstream]]:
    """Two more upstreams beside the place's own."""
    with ScriptedUpstream(tokens=5, interval_ms=1) as one, ScriptedUpstream(tokens=5, interval_ms=1) as two:
        yield [one, two]


@pytest.fixture
def three(place: Place, others: list[ScriptedUpstream]) -> list[ScriptedUpstream]:
    upstreams = [place.upstream, *others]
    for upstream in upstreams:
        upstream.reset()
    return upstreams


@pytest.fixture(scope="module")
def closed() -> str:
    with ports.reserve() as holder:
        return f"http://127.0.0.1:{ports.number(holder)}"


def hits(upstreams: list[ScriptedUpstream]) -> list[int]:
    return [len(upstream.requests()) for upstream in upstreams]


def world_of(place: Place, model: str) -> World:
    """As `settled` wants it: only the name of the model counts."""
    world = object.__new__(World)
    world.model = model
    return world


def served_second(answer: Answer, target: str) -> None:
    assert (answer.status, answer.text) == (200, TOKENS)
    assert (answer.headers["x-headrace-target"], answer.headers["x-headrace-fallback"]) == (target, "1")
    record = answer.record
    assert (record["status"], record["target"], record["fallback"]) == ("ok", target, 1)
    assert (record["output_tokens"], record["usage_source"]) == (5, "reported")


FAILURES: dict[str, dict[str, Any]] = {
    "a failure": {"status": 500},
    "a bad gateway": {"status": 502, "html": True},
    "no room": {"status": 503},
    "a rate limit": {"status": 429, "retry_after": "1"},
    "a full queue": {"queue_full": True},
    "an error event": {"error_event_after": 0},
    "a page": {"html": True},
    "nothing": {"raw": []},
    "a broken connection": {"drop_after": 0},
    "no credit": {"status": 400, "body": {"error": {"message": "Your credit balance is too low."}}},
    "refused credentials": {"status": 401},
    "no such model": {"status": 404},
}


@STREAMED
@pytest.mark.parametrize("kind", FAILURES)
def test_it_asks_the_next_target(
    place: Place, three: list[ScriptedUpstream], valkey: "redis.Redis", kind: str, stream: bool
) -> None:
    bad, good, unused = three
    bad.script(**FAILURES[kind])
    model = place.add_route([bad.url], [good.url], [unused.url])
    answer = place.chat(model=model, stream=stream)
    served_second(answer, f"{model.lower()}-1")
    # A kept-alive connection that breaks off unanswered may have been stale: that is tried once more.
    assert hits(three) in ([1, 1, 0], [2, 1, 0] if kind == "a broken connection" else None)
    rids = [upstream.requests()[0]["rid"] for upstream in (bad, good)]
    assert rids[0] != rids[1]
    assert all(re.fullmatch("[0-9a-f]{32}", rid) for rid in rids)
    assert answer.record["upstream_id"] == rids[1]
    assert f"{model.lower()}-0/r0: " in answer.record["labels"]["attempts"]
    settled(valkey, world_of(place, model), 1)


@STREAMED
def test_it_asks_the_next_replica_first(place: Place, three: list[ScriptedUpstream], closed: str, stream: bool) -> None:
    model = place.add_route([closed, three[1].url], [three[2].url], policy="round_robin")
    answers = [place.chat(model=model, stream=stream) for _ in range(4)]
    assert [answer.text for answer in answers] == [TOKENS] * 4
    assert sorted(answer.record["fallback"] for answer in answers) == [0, 0, 1, 1]
    assert {answer.record["replica"] for answer in answers} == {f"{model.lower()}-0/r1"}
    assert hits(three) == [0, 4, 0]


def test_it_passes_over_hosts_that_nobody_knows_and_servers_without_tls(
    place: Place, three: list[ScriptedUpstream]
) -> None:
    plain = three[0].url.replace("http:", "https:")
    model = place.add_route(["http://engine.invalid:30000"], [plain], [three[1].url])
    answer = place.chat(model=model, stream=True)
    assert (answer.text, answer.record["fallback"]) == (TOKENS, 2)
    assert hits(three) == [0, 1, 0]
    told = answer.record["labels"]["attempts"]
    assert told.count("Unreachable") == 2, told


@STREAMED
@pytest.mark.parametrize(
    "script",
    [
        {"status": 400, "body": {"message": "Invalid image."}},
        {"status": 400, "body": {"message": "This model's maximum context length is 8192 tokens."}},
        {"status": 413},
        {"status": 422},
    ],
    ids=["400", "too long", "413", "422"],
)
def test_it_does_not_ask_again_what_the_client_caused(
    place: Place, three: list[ScriptedUpstream], script: dict[str, Any], stream: bool
) -> None:
    three[0].script(**script)
    model = place.add_route([three[0].url], [three[1].url])
    answer = place.chat(model=model, stream=stream)
    assert (answer.status, answer.record["fallback"]) == (400, 0)
    assert hits(three) == [1, 0, 0]


@pytest.mark.parametrize(
    "script",
    [{"drop_after": 2}, {"drop_after": 2, "drop": "close"}, {"error_event_after": 2}],
    ids=["reset", "closed", "error event"],
)
def test_it_asks_nobody_else_after_the_first_byte(
    place: Place, three: list[ScriptedUpstream], script: dict[str, Any]
) -> None:
    three[0].script(**script)
    model = place.add_route([three[0].url], [three[1].url])
    answer = place.chat(model=model, stream=True)
    assert (answer.status, answer.text, answer.is_done) == (200, "tok0 tok1 ", False)
    assert answer.error["code"] in {"upstream_disconnected", "upstream_error"}
    assert (answer.record["output_tokens"], answer.record["fallback"]) == (2, 0)
    assert hits(three) == [1, 0, 0]


def test_it_asks_another_for_a_whole_answer_that_broke_off(place: Place, three: list[ScriptedUpstream]) -> None:
    """Nothing of it has reached the client."""
    three[0].script(drop_after=3, headers_first=True)
    model = place.add_route([three[0].url], [three[1].url])
    served_second(place.chat(model=model), f"{model.lower()}-1")


@pytest.mark.parametrize("script", [{"stall_after": 0}, {"headers_only": True}, {"stall_after": 0, "ping_ms": 50}])
def test_it_goes_on_when_the_first_byte_is_late_and_only_after_the_first_attempt_is_closed(
    place: Place, three: list[ScriptedUpstream], script: dict[str, Any]
) -> None:
    three[0].script(**script)
    model = place.add_route([three[0].url], [three[1].url], first_byte_timeout=0.4)
    answer = place.chat(model=model, stream=True)
    served_second(answer, f"{model.lower()}-1")
    [late], [good] = ([seen for seen in up.requests() if seen["path"] != "/abort_request"] for up in three[:2])
    assert late["how"] in {"aborted", "closed_by_client"}
    assert late["ended"] <= good["t"]
    assert good["t"] - late["t"] < 3


@STREAMED
def test_it_goes_on_from_an_engine_that_takes_everything_and_answers_nothing(
    place: Place, three: list[ScriptedUpstream], stream: bool
) -> None:
    """As one that is frozen. To be told to stop it is given half a second, in which its time is over only once."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        url = f"http://127.0.0.1:{frozen.getsockname()[1]}"
        model = place.add_route([url], [three[1].url], first_byte_timeout=0.4)
        served_second(place.chat(model=model, stream=stream, max_tokens=5), f"{model.lower()}-1")


def test_it_goes_on_when_a_whole_answer_does_not_come(place: Place, three: list[ScriptedUpstream]) -> None:
    """Within the time to a first byte and a fifth of a second for each token that it may have."""
    three[0].script(headers_only=True)
    model = place.add_route([three[0].url], [three[1].url], first_byte_timeout=0.4)
    served_second(place.chat(model=model, max_tokens=5), f"{model.lower()}-1")
    [late], [good] = ([seen for seen in up.requests() if seen["path"] != "/abort_request"] for up in three[:2])
    assert late["how"] in {"aborted", "closed_by_client"}
    assert late["ended"] <= good["t"]
    assert 1.4 <= good["t"] - late["t"] < 5


def test_it_keeps_to_the_total_time_over_all_attempts(place: Place, three: list[ScriptedUpstream]) -> None:
    for upstream in three:
        upstream.script(stall_after=0)
    model = place.add_route(*([up.url] for up in three), first_byte_timeout=0.5, total_timeout=0.9)
    answer = place.chat(model=model, stream=True)
    assert (answer.status, answer.error["code"], answer.record["status"]) == (504, "upstream_timeout", "error")
    assert hits([three[2]]) == [0]


@STREAMED
def test_it_tells_when_there_is_room_again_if_all_are_full(
    place: Place, three: list[ScriptedUpstream], stream: bool
) -> None:
    for upstream, wait in zip(three, ("9", "4", "6"), strict=True):
        upstream.script(status=429, retry_after=wait)
    answer = place.chat(model=place.add_route(*([up.url] for up in three)), stream=stream)
    assert (answer.status, answer.error["code"], answer.headers["retry-after"]) == (503, "no_capacity", "4")
    assert hits(three) == [1, 1, 1]
    assert (answer.record["status"], answer.record["fallback"], answer.record["output_tokens"]) == ("error", 2, 0)


@STREAMED
def test_it_tells_of_a_failure_before_it_tells_of_full_ones(
    place: Place, three: list[ScriptedUpstream], stream: bool
) -> None:
    three[0].script(status=503)
    three[1].script(status=500)
    three[2].script(queue_full=True)
    answer = place.chat(model=place.add_route(*([up.url] for up in three)), stream=stream)
    assert (answer.status, answer.error["code"]) == (502, "upstream_error")


@STREAMED
def test_it_tells_no_client_that_its_request_is_at_fault_because_another_target_cannot_take_it(
    place: Place, three: list[ScriptedUpstream], stream: bool
) -> None:
    """The first may take it once it is back: a client that is told 400 would not ask again."""
    three[0].script(status=503, retry_after="4")
    refusal = {"message": "This model's maximum context length is 8192 tokens."}
    for upstream in three[1:]:
        upstream.script(status=400, body=refusal)
    answer = place.chat(model=place.add_route([three[0].url], [three[1].url]), stream=stream)
    assert (answer.status, answer.error["code"], answer.headers["retry-after"]) == (503, "no_capacity", "4")
    told = answer.record["labels"]["attempts"]
    assert ("Busy" in told, "Rejected" in told) == (True, True)
    three[0].script(status=500)
    model = place.add_route([three[0].url, three[2].url], policy="round_robin")
    codes = {place.chat(model=model, stream=stream).error["code"] for _ in range(2)}
    assert codes == {"context_length_exceeded"}, "another replica speaks for its target"


def test_it_gives_a_status_of_its_own_when_both_fail_after_their_role(
    place: Place, three: list[ScriptedUpstream]
) -> None:
    three[0].script(error_event_after=0)
    three[1].script(status=503)
    answer = place.chat(model=place.add_route([three[0].url], [three[1].url]), stream=True)
    assert (answer.status, answer.error["code"]) == (502, "upstream_error")


def test_it_falls_back_after_headers_have_gone_out(place: Place, three: list[ScriptedUpstream]) -> None:
    """The gateway sends them after 3 s here; the first byte is still to come."""
    three[0].script(stall_after=0)
    model = place.add_route([three[0].url], [three[1].url], first_byte_timeout=3.6)
    answer = place.chat(model=model, stream=True)
    assert (answer.status, answer.text, answer.is_done) == (200, TOKENS, True)
    assert b": keep-alive" in answer.raw
    assert answer.record["fallback"] == 1


@STREAMED
def test_it_falls_back_to_a_provider_and_speaks_its_protocol(
    place: Place, three: list[ScriptedUpstream], stream: bool
) -> None:
    three[0].script(status=500)
    model = place.add_route([three[0].url], Hosted(three[1].url))
    answer = place.chat(model=model, stream=stream, max_tokens=7)
    served_second(answer, f"{model.lower()}-1")
    [sent] = three[1].requests()
    assert sent["body"]["model"] == "hosted"
    assert sent["body"]["max_completion_tokens"] == 7
    assert not {"rid", "cache_salt", "max_tokens"} & set(sent["body"])
    assert sent["body"]["stream_options"] == {"include_usage": True}


def test_it_asks_the_same_provider_for_another_model(place: Place, three: list[ScriptedUpstream]) -> None:
    three[0].scripts({"status": 500})
    model = place.add_route(Hosted(three[0].url))
    first = Target.objects.get(route_id=model)
    Target.objects.create(route_id=model, position=1, provider=first.provider, upstream_model="smaller")
    place.world.wait_followed()
    answer = place.chat(model=model)
    assert (answer.status, answer.record["fallback"]) == (200, 1)
    assert [seen["body"]["model"] for seen in three[0].requests()] == ["hosted", "smaller"]
