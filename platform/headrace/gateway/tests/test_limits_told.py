"""What a client is told of its limits: when to come back, what is left, and what can never be."""

import time
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import prompt
from tenants.models import Project


@pytest.mark.parametrize(
    ("limits", "fields"),
    [
        ({"requests_per_minute": 60}, {"max_tokens": 1}),
        ({"output_tokens_per_minute": 600}, {"max_tokens": 600}),
    ],
    ids=["requests", "output tokens"],
)
def test_it_says_exactly_when_to_come_back(place: Place, limits: dict[str, Any], fields: dict[str, Any]) -> None:
    _, secret = place.world.add_key(None, **limits)
    place.wait_known(secret=secret)
    content = prompt(tokens=20) if "output_tokens_per_minute" in limits else "Hello"
    while (answer := place.chat(content, secret=secret, **fields)).status == 200:
        continue
    told = int(answer.headers["retry-after-ms"])
    assert 1 <= told <= 60_000
    time.sleep(told / 1000)
    assert place.chat(content, secret=secret, **fields).status == 200


def test_it_says_what_can_never_be_admitted(place: Place) -> None:
    """An eternal 429 would have its client try for ever."""
    _, secret = place.world.add_key(input_tokens_per_minute=200, output_tokens_per_minute=50)
    place.wait_known(secret=secret)
    for answer in (
        place.chat("x" * 3500, secret=secret, max_tokens=1),
        place.chat(secret=secret, max_tokens=51),
        place.chat(secret=secret, max_tokens=26, n=2),
    ):
        assert (answer.status, answer.error["code"]) == (400, "request_too_large"), answer.raw
        assert "retry-after" not in answer.headers
    assert place.chat(secret=secret, max_tokens=25, n=2).status == 200


def test_it_refuses_no_prompt_for_good_by_an_estimate(place: Place) -> None:
    """Estimated at 3.5 bytes a token, and really of 4: where that decides, the engine has counted."""
    model = place.add_model()
    _, secret = place.world.add_key(input_tokens_per_minute=900)
    place.wait_known(model, secret=secret)
    large = place.chat("x" * 3800, secret=secret, model=model, max_tokens=1)
    assert (large.status, large.error["code"]) == (400, "request_too_large")
    answer = place.chat("x" * 3500, secret=secret, model=model, max_tokens=1)
    assert answer.status == 200, answer.raw
    assert 850 < answer.record["input_tokens"] <= 900


def test_it_bounds_one_prompt_and_one_answer(place: Place) -> None:
    _, secret = place.world.add_key(max_prompt_tokens=100, max_output_tokens=40)
    place.wait_known(secret=secret)
    large, long = place.chat("x" * 700, secret=secret), place.chat(secret=secret, max_tokens=41)
    assert (large.status, large.error["code"], large.error["param"]) == (400, "request_too_large", "messages")
    assert (long.status, long.error["code"], long.error["param"]) == (400, "request_too_large", "max_tokens")
    assert "100" in large.error["message"]
    assert "40" in long.error["message"]
    place.upstream.reset()
    assert place.chat(secret=secret).status == 200
    assert place.seen()["body"]["max_tokens"] == 40, "the default is bounded too"
    assert place.chat(secret=secret, max_tokens=40).status == 200


@pytest.mark.parametrize("n", [1, 3])
def test_it_cuts_a_max_tokens_that_nobody_named_to_the_limit(place: Place, n: int) -> None:
    """1,000 by default: a limit of output tokens a minute below it would refuse all that name none, for good."""
    _, secret = place.world.add_key(output_tokens_per_minute=60)
    place.wait_known(secret=secret)
    place.upstream.reset()
    answer = place.chat(secret=secret, n=n)
    assert answer.status == 200, answer.raw
    assert place.seen()["body"]["max_tokens"] == 60 // n
    named = place.chat(secret=secret, max_tokens=61 // n + 1, n=n)
    assert (named.status, named.error["code"]) == (400, "request_too_large")


def test_it_tells_what_is_left_in_the_tightest_scope(place: Place) -> None:
    world = place.world
    tenant = world.add_tenant("tight", requests_per_minute=100, output_tokens_per_minute=5000)
    project = Project.objects.create(tenant=tenant, slug="app", name="App", requests_per_minute=10)
    _, secret = world.add_key(project, requests_per_minute=50, input_tokens_per_minute=10_000)
    _, unlimited = world.add_key()
    place.wait_known(secret=secret)
    place.wait_known(secret=unlimited)
    for stream in (False, True):
        headers = place.chat(secret=secret, max_tokens=500, stream=stream).headers
        assert headers["x-ratelimit-limit-requests"] == "10"
        assert headers["x-ratelimit-remaining-requests"] in {"9", "8"}
        assert headers["x-ratelimit-limit-input-tokens"] == "10000"
        assert 9000 < int(headers["x-ratelimit-remaining-input-tokens"]) < 10_000
        assert headers["x-ratelimit-limit-output-tokens"] == headers["x-ratelimit-limit-tokens"] == "5000"
        assert 4400 <= int(headers["x-ratelimit-remaining-output-tokens"]) <= 4500
        assert headers["x-ratelimit-remaining-tokens"] == headers["x-ratelimit-remaining-output-tokens"]
        for name in ("requests", "tokens", "input-tokens", "output-tokens"):
            reset = headers[f"x-ratelimit-reset-{name}"]
            assert reset.endswith("s")
            assert 0 < float(reset[:-1]) <= 60
    assert not [name for name in place.chat(secret=unlimited).headers if name.startswith("x-ratelimit")]
