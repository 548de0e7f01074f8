"""A request may ask not to be asked of anybody else: `x-headrace-fallback: off`."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.gateway.tests.calling import Hosted, Place
from headrace.stack import ports
from headrace_dev.testing.upstream import ScriptedUpstream, prompt

OFF = {"x-headrace-fallback": "off"}


@pytest.fixture(scope="module")
def other() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as other:
        yield other


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "fails", [{"status": 500}, {"status": 429}, {"error_event_after": 0}, {"raw": []}, {"html": True}]
)
def test_it_asks_nobody_else(place: Place, other: ScriptedUpstream, fails: dict[str, Any], stream: bool) -> None:
    place.upstream.reset()
    other.reset()
    place.upstream.script(**fails)
    model = place.add_route([place.upstream.url], [other.url], Hosted(other.url))
    answer = place.chat(model=model, stream=stream, headers=OFF)
    assert answer.status >= 500
    assert (answer.record["status"], answer.record["fallback"], answer.record["target"]) == (
        "error", 0, f"{model.lower()}-0",
    )  # fmt: skip
    assert other.requests() == []
    assert place.chat(model=model, stream=stream, headers={"x-headrace-fallback": "on"}).record["fallback"] == 1


def test_it_asks_no_other_replica_either_and_none_after_the_first_byte(place: Place, other: ScriptedUpstream) -> None:
    place.upstream.reset()
    other.reset()
    with ports.reserve() as holder:
        closed = f"http://127.0.0.1:{ports.number(holder)}"
    model = place.add_route([closed, other.url], policy="round_robin")
    statuses = [place.chat(model=model, headers=OFF).status for _ in range(4)]
    assert sorted(statuses) == [200, 200, 502, 502]
    model = place.add_route([place.upstream.url], [other.url])
    other.reset()
    answer = place.chat(prompt(tokens=5, drop_after=2), model=model, stream=True, headers=OFF)
    assert answer.record["status"] == "error"
    assert other.requests() == []


def test_it_does_not_pass_over_a_target_that_cannot_take_it(place: Place, other: ScriptedUpstream) -> None:
    place.upstream.reset()
    other.reset()
    model = place.add_route(Hosted(place.upstream.url, context_window=500), [other.url])
    long = "water " * 2000
    assert place.chat(long, model=model).status == 200
    answer = place.chat(long, model=model, headers=OFF)
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")


def test_it_refuses_another_value(place: Place) -> None:
    answer = place.chat(headers={"x-headrace-fallback": "maybe"})
    assert (answer.status, answer.error["code"]) == (400, "invalid_request")
