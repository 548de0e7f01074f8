"""A chat through the real web process, under both servers: what the client gets, and what is on record."""

import json
from typing import Any

import httpx
import redis

from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, at_rest


def events(text: str) -> list[dict[str, Any]]:
    assert text.endswith("data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_it_streams_and_meters(web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    world.wait_known(web)
    body = world.body(stream=True, stream_options={"include_usage": True}, max_tokens=4)
    answer = httpx.post(f"{web.url}/v1/chat/completions", headers=world.headers(), json=body, trust_env=False)
    assert answer.status_code == 200, answer.text
    chunks = events(answer.text)
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    assert text == "tok0 tok1 tok2 tok3 "
    usage = chunks[-1]["usage"]
    assert usage["completion_tokens"] == 4
    assert {c["id"] for c in chunks} == {f"chatcmpl-{answer.headers['x-request-id']}"}
    assert {c["model"] for c in chunks} == {world.model}
    at_rest(valkey)
    record = web.records()[-1]
    assert record["request_id"] == answer.headers["x-request-id"]
    assert (record["input_tokens"], record["output_tokens"]) == (usage["prompt_tokens"], 4)
    assert record["status"] == "ok"


def test_it_answers_whole(web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    world.wait_known(web)
    answer = httpx.post(f"{web.url}/v1/chat/completions", headers=world.headers(), json=world.body(), trust_env=False)
    assert answer.status_code == 200, answer.text
    completion = answer.json()
    assert completion["choices"][0]["message"]["content"] == "tok0 tok1 tok2 tok3 tok4 "
    assert completion["usage"]["completion_tokens"] == 5
    at_rest(valkey)


def test_it_records_why_an_upstream_failed(web: WebProcess, world: World, valkey: "redis.Redis") -> None:
    world.wait_known(web)
    body = world.body(prompt(status=500), stream=True)
    answer = httpx.post(f"{web.url}/v1/chat/completions", headers=world.headers(), json=body, trust_env=False)
    assert answer.status_code == 502
    at_rest(valkey)
    assert web.records()[-1]["labels"]["error"] == "Failed: the upstream failed (status 500)"
