"""Every way a request ends frees its slot and gives back what it did not use."""

import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import redis

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.world import at_rest

SCRIPTS: dict[str, dict[str, Any]] = {
    "ok": {"tokens": 3},
    "refused": {"status": 400},
    "busy": {"queue_full": True},
    "failed": {"error_event_after": 2},
    "dropped": {"drop_after": 2},
    "incomplete": {"finish_reason": None},
    "silent": {"headers_only": True},
    "nonsense": {"html": True},
}


@pytest.fixture(scope="module")
def model(place: Place) -> str:
    model = place.add_model(first_byte_timeout=0.4, total_timeout=0.6)
    place.wait_known(model)
    return model


@pytest.fixture(scope="module")
def secret(place: Place) -> str:
    _, secret = place.world.add_key(concurrency=2)
    place.wait_known(secret=secret)
    return secret


def leave(place: Place, secret: str, body: dict[str, Any]) -> None:
    """Send a chat and go away, with a reset, before anything comes."""
    request = httpx.Request("POST", f"{place.web.url}/v1/chat/completions", json=body)
    with socket.create_connection(("127.0.0.1", place.web.port)) as connection:
        lines = [f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n".encode()]
        lines += [b"Content-Length: %d\r\n\r\n" % len(request.content), request.content]
        connection.sendall(b"".join(lines))
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def twice(ask: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return [each.result() for each in (threads.submit(ask), threads.submit(ask))]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_frees_the_slot(
    place: Place, model: str, secret: str, valkey: "redis.Redis", name: str, stream: bool
) -> None:
    content = prompt(**SCRIPTS[name])
    for _ in range(3):
        answers = twice(lambda: place.chat(content, secret=secret, model=model, stream=stream))
        assert 429 not in {answer.status for answer in answers}
    at_rest(valkey)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_frees_the_slot_of_a_client_that_left(
    place: Place, secret: str, valkey: "redis.Redis", stream: bool
) -> None:
    body = place.body(prompt(first_ms=10_000), stream=stream)
    for _ in range(3):
        twice(lambda: leave(place, secret, body))
        at_rest(valkey)
    assert [answer.status for answer in twice(lambda: place.chat(secret=secret))] == [200, 200]


def test_it_gives_back_all_tokens_of_a_request_that_got_nothing(place: Place) -> None:
    _, secret = place.world.add_key(
        requests_per_minute=100, input_tokens_per_minute=10_000, output_tokens_per_minute=10_000
    )
    place.wait_known(secret=secret)
    for name in ("refused", "busy", "nonsense"):
        assert place.chat(prompt(**SCRIPTS[name]), secret=secret, max_tokens=5000, stream=True).status >= 400
    headers = place.chat(secret=secret, max_tokens=100).headers
    assert int(headers["x-ratelimit-remaining-output-tokens"]) == 9900
    assert int(headers["x-ratelimit-remaining-input-tokens"]) > 9900
    assert int(headers["x-ratelimit-remaining-requests"]) in {96, 97}, "a request that was tried is a request"


def test_it_charges_a_prompt_as_it_is(place: Place) -> None:
    """Larger than estimated is charged, smaller comes back; more than the limit is a debt that later calls wait for."""
    _, secret = place.world.add_key(input_tokens_per_minute=10_000)
    place.wait_known(secret=secret)

    def left(**script: Any) -> int:
        answer = place.chat(prompt(**script), secret=secret, max_tokens=1)
        assert answer.status == 200, answer.raw
        return int(answer.headers["x-ratelimit-remaining-input-tokens"])

    assert left(prompt_tokens=4000, cached_tokens=1000) > 9900
    assert 5900 < left(prompt_tokens=9000) < 6200
    refused = place.chat(secret=secret, max_tokens=1)
    assert refused.status == 429
    assert 15 <= int(refused.headers["retry-after"]) <= 20  # 3,000 tokens too many, at 10,000 a minute
