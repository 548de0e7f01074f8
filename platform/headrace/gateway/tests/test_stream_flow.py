"""Events reach the client as they come, under every server, whatever else the process is asked meanwhile."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import httpx

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import prompt


def arrivals(site: Place, **script: float) -> Iterator[float]:
    """When each piece of a stream arrives, in seconds from the request on."""
    body = site.body(prompt(**script), stream=True)
    # Compression is what a client offers; a server that took the offer would hold events back.
    headers = site.world.headers() | {"accept-encoding": "gzip, br"}
    with httpx.Client(trust_env=False, timeout=60) as http:
        began = time.monotonic()
        with http.stream("POST", f"{site.web.url}/v1/chat/completions", json=body, headers=headers) as answer:
            assert "content-encoding" not in answer.headers
            for _ in answer.iter_raw():
                yield time.monotonic() - began


def test_it_passes_each_event_as_it_comes(site: Place) -> None:
    came = list(arrivals(site, tokens=6, interval_ms=200))
    assert len(came) >= 6
    assert came[0] < 0.8, "the first is not held until the last"
    assert came[-1] > 1.0


def test_it_says_the_same_of_failures(site: Place) -> None:
    """Before and after the first byte, streamed and whole."""
    for fields in ({"stream": True}, {"stream": False}):
        before = site.scripted(fields=fields, queue_full=True)
        assert (before.status, before.error["code"], before.headers["retry-after"]) == (503, "no_capacity", "1")
        refused = site.scripted(fields=fields, status=400)
        assert (refused.status, refused.error["code"]) == (400, "invalid_request")
    after = site.scripted(fields={"stream": True}, tokens=9, error_event_after=3)
    assert (after.status, after.error["code"], after.text) == (200, "upstream_error", "tok0 tok1 tok2 ")
    assert not after.is_done
    assert (after.record["status"], after.record["output_tokens"]) == ("error", 3)
    assert site.chat().status == 200


def test_it_keeps_the_pace_of_a_stream_beside_huge_and_odd_prompts(site: Place) -> None:
    message = {"role": "user", "content": "x"}
    model = site.world.model
    odd = [
        {"model": model, "messages": [{"role": "user", "content": "A" * 1_000_000}]},
        {"model": model, "messages": [{"role": "user", "content": "漢" * 300_000}]},
        {"model": model, "messages": [message] * 10_000},
        {"model": model, "messages": [message], "stop": "x" * 100_000},
        {"model": model, "messages": [message], "metadata": {str(n): "x" for n in range(100_000)}},
    ]
    bodies = [json.dumps(body).encode() for body in odd]
    bodies.append(b'{"model":"%b","messages":' % model.encode() + b"[" * 200_000)
    with ThreadPoolExecutor(3) as threads:
        stream = threads.submit(lambda: list(arrivals(site, tokens=100, interval_ms=20)))
        time.sleep(0.3)
        answers = list(threads.map(site.send, bodies))
        came = stream.result()
    assert [answer.status for answer in answers] == [200, 200, 200, 400, 400, 400]
    assert max(after - before for before, after in pairwise(came)) < 1.0, "also on a busy machine"


def test_it_serves_others_while_many_streams_stall(site: Place) -> None:
    with ThreadPoolExecutor(50) as threads:
        model = site.add_model(between_events_timeout=1.5)
        site.wait_known(model)
        stalled = prompt(stall_after=1)
        running = [threads.submit(lambda: site.chat(stalled, model=model, stream=True)) for _ in range(50)]
        time.sleep(0.3)
        assert site.chat(stream=True).is_done
        answers = [answer.result() for answer in running]
    assert {(answer.status, answer.error["code"]) for answer in answers} == {(200, "upstream_timeout")}
    assert {answer.record["output_tokens"] for answer in answers} == {1}
    site.upstream.wait_until_idle()
