"""Real answers of real engines: what the client is told of its use is what the ledger says."""

import json
from typing import Any

import httpx
import redis

from headrace_dev.testing.engine import Engine
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest, drained, records

QUESTION = "What is the capital of France? Answer in one sentence."


def post(web: WebProcess, world: World, body: dict[str, Any]) -> httpx.Response:
    url = f"{web.url}/v1/chat/completions"
    return httpx.post(url, headers=world.headers(), json=body, timeout=120, trust_env=False)


def test_it_streams_and_the_ledger_agrees(engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 12, "temperature": 0}
    answer = post(web, world, world.body(QUESTION, **options))
    assert answer.status_code == 200, answer.text
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
    assert "Paris" in text
    usage = chunks[-1]["usage"]
    assert 0 < usage["completion_tokens"] <= 12
    at_rest(valkey)
    drained(valkey)
    [record] = records(world)
    assert (record.status, record.usage_source) == ("ok", "reported")
    assert (record.input_tokens, record.output_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert record.cached_input_tokens == usage["prompt_tokens_details"]["cached_tokens"]
    assert record.ttft_ms is not None
    assert record.ttft_ms > 0


def test_it_answers_whole_and_the_ledger_agrees(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    answer = post(web, world, world.body(QUESTION, max_tokens=12, temperature=0))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["model"] == world.model
    assert "Paris" in body["choices"][0]["message"]["content"]
    at_rest(valkey)
    drained(valkey)
    [record] = records(world)
    assert record.input_tokens == body["usage"]["prompt_tokens"]
    assert record.output_tokens == body["usage"]["completion_tokens"]
    assert body["id"] == f"chatcmpl-{record.request_id}"


def test_it_refuses_what_is_not_the_clients_to_say(engine: Engine, web: WebProcess, world: World) -> None:
    image = [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]
    for field, value in (("cache_salt", "x"), ("rid", "x"), ("priority", 9), ("extra_key", "x")):
        answer = post(web, world, world.body(QUESTION, **{field: value}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_parameter")
        assert answer.json()["error"]["param"] == field
    answer = post(web, world, {"model": world.model, "messages": [{"role": "user", "content": image}]})
    assert answer.status_code == 400


def test_it_says_when_a_prompt_is_too_long(
    engine: Engine, web: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    for stream in (False, True):
        answer = post(web, world, world.body("river stone " * 6000, max_tokens=5, stream=stream))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded"), answer.text
    at_rest(valkey)
    drained(valkey)
    assert [(record.status, record.input_tokens, record.output_tokens) for record in records(world)] == [
        ("error", 0, 0),
        ("error", 0, 0),
    ]
