"""A request that cannot be served is a 400 that names its fault; it takes nothing from any meter and no slot."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from headrace.gateway.tests.calling import Answer, Place
from tenants.models import ApiKey

LIMITS: dict[str, Any] = {
    "concurrency": 1,
    "requests_per_minute": 1000,
    "input_tokens_per_minute": 1_000_000,
    "output_tokens_per_minute": 1_000_000,
}
TEXT = {"role": "user", "content": "Hello"}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.fixture(scope="module")
def limited(place: Place) -> tuple[ApiKey, str]:
    key, secret = place.world.add_key(**LIMITS)
    place.wait_known(secret=secret)
    return key, secret


@pytest.fixture
def untouched(place: Place, limited: tuple[ApiKey, str], valkey: "redis.Redis") -> Iterator[str]:
    """The secret of a key with every limit. After the test no meter has moved, and its one slot is free."""
    key, secret = limited
    place.upstream.reset()
    yield secret
    assert place.upstream.requests() == []
    assert valkey.keys(f"hr:m:key:{key.pk}:*") == valkey.keys("hr:hold*") == []
    assert place.chat(secret=secret).status == 200


def refused(answer: Answer, param: str | None, code: str) -> None:
    assert answer.status == 400, answer.raw
    error = answer.error
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, param), error
    assert answer.headers["x-request-id"]


def each(name: str, *values: Any) -> list[tuple[str, Any]]:
    return [(name, value) for value in values]


INVALID: list[tuple[str, Any]] = [
    *each("n", 0, -1, 1_000_000_000, "2", 2.5, True, [1], 10**30),
    *each("max_tokens", 0, -1, "5", 1.5, True, []),
    *each("max_completion_tokens", 0, -1, "5"),
    *each("stream", "true", 1, []),
    *each("temperature", -0.1, 2.1, "hot", 1e308),
    *each("top_p", -0.1, 1.1),
    *each("frequency_penalty", -3, 3),
    ("presence_penalty", 3),
    ("stop", [["nested"]]),
    ("stop", ["x"] * 17),
    ("stop", "x" * 2000),
    ("seed", "x"),
    ("seed", 10**30),
    ("logit_bias", {"1": 101}),
    ("logit_bias", [1]),
    ("logprobs", 1),
    ("top_logprobs", 21),
    ("response_format", "json"),
    ("response_format", {}),
    ("tools", [{"type": "retrieval"}]),
    ("tools", [{"type": "function", "function": {}}]),
    ("tools", [TOOL] * 129),
    ("tool_choice", "maybe"),
    ("parallel_tool_calls", "yes"),
    ("reasoning_effort", "enormous"),
    ("user", 7),
    ("user", "x" * 600),
    ("user", "a\u0000b"),
    ("metadata", {"a": 1}),
    ("metadata", {str(number): "x" for number in range(17)}),
    ("metadata", {"x" * 65: "y"}),
    ("metadata", {"a": "x" * 513}),
    ("metadata", {"a": "\u0000"}),
    ("metadata", {"a\u0000": "b"}),
    ("metadata", {str(number): "🌍" * 512 for number in range(16)}),
    ("metadata", {str(number): "\u0001" * 512 for number in range(16)}),
    ("top_k", -2),
    ("top_k", 1.5),
    ("top_k", 10**30),
    ("min_p", 2),
    ("repetition_penalty", 0),
    ("chat_template_kwargs", {"chat_template": "{{ 7 }}"}),
    ("chat_template_kwargs", {"tokenize": True}),
    ("stream_options", {"include_usage": "yes"}),
    ("model", 5),
    ("model", ""),
    ("model", ["a"]),
]


@pytest.mark.parametrize(("name", "value"), INVALID, ids=[f"{name}-{str(value)[:20]}" for name, value in INVALID])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_refuses_values_no_engine_shall_see(
    place: Place, limited: tuple[ApiKey, str], name: str, value: Any, stream: bool
) -> None:
    began = time.monotonic()
    answer = place.chat(secret=limited[1], **{"stream": stream, name: value})
    refused(answer, name, "invalid_request")
    assert "x" * 600 not in answer.raw.decode(), "the value is not repeated"
    assert time.monotonic() - began < 2


def test_it_took_nothing_for_any_of_them(place: Place, untouched: str) -> None:
    for name, value in INVALID:
        assert place.chat(secret=untouched, **{name: value}).status == 400


UNKNOWN = [
    *("functions", "function_call", "audio", "web_search_options", "guided_json", "foo", "", "Model", "extra_body"),
    # What an engine could be abused with.
    *("rid", "cache_salt", "extra_key", "priority", "lora_path", "custom_logit_processor", "custom_params"),
    *("input_ids", "input_embeds", "data_parallel_rank", "session_params", "bootstrap_host", "bootstrap_room"),
    *("bootstrap_port", "ignore_eos", "min_tokens", "return_hidden_states", "logit_processor", "request_id"),
    *("continuous_usage_stats", "skip_special_tokens", "regex", "ebnf", "chat_template", "echo", "best_of"),
    *("timings_per_token", "id_slot", "cache_prompt", "return_tokens", "kv_transfer_params", "prompt_logprobs"),
]


def test_it_refuses_fields_it_does_not_know_by_name(place: Place, untouched: str) -> None:
    for name in UNKNOWN:
        for _, value in each(name, "x", 2, {"a": 1}):  # null and 1 may ask for nothing: test_fields_sent.py
            refused(place.chat(secret=untouched, **{name: value}), name, "unsupported_parameter")


def test_it_refuses_what_only_some_values_of_change_nothing(place: Place, untouched: str) -> None:
    assert place.chat(modalities=["text"], verbosity="medium", store=True, service_tier="auto").status == 200
    place.upstream.reset()
    for name, value in each("modalities", ["text", "audio"], []) + each("verbosity", "high"):
        refused(place.chat(secret=untouched, **{name: value}), name, "unsupported_parameter")


def test_it_takes_stream_options_of_a_stream_alone(place: Place, untouched: str) -> None:
    for more in ({}, {"stream": False}, {"stream": None}):
        answer = place.chat(secret=untouched, stream_options={"include_usage": True}, **more)
        refused(answer, "stream_options", "invalid_request")


def test_it_refuses_two_limits_that_differ(place: Place, untouched: str) -> None:
    refused(place.chat(secret=untouched, max_tokens=5, max_completion_tokens=6), "max_tokens", "invalid_request")


@pytest.mark.parametrize("tokens", [100_000, 10**6, 10**12, 10**30])
def test_it_refuses_more_than_the_window(place: Place, untouched: str, tokens: int) -> None:
    refused(place.chat(secret=untouched, max_tokens=tokens), "max_tokens", "context_length_exceeded")


def user(part: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [part]}


def calling(function: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": function}]}


MESSAGES: list[tuple[str, Any, str]] = [
    ("no list", "Hello", "invalid_request"),
    ("none", [], "invalid_request"),
    ("no objects", ["Hello"], "invalid_request"),
    ("no role", [{"content": "x"}], "invalid_request"),
    ("a made-up role", [{"role": "user2", "content": "x"}], "invalid_request"),
    ("a number", [{"role": "user", "content": 7}], "invalid_request"),
    ("a made-up part", [user({"type": "file", "file": {"file_id": "f"}})], "invalid_request"),
    ("a made-up field", [TEXT | {"prefix": True}], "unsupported_parameter"),
    ("a made-up field of a part", [user({"type": "text", "text": "x", "cache": 1})], "unsupported_parameter"),
    ("a call without a name", [calling({})], "invalid_request"),
    ("arguments that are no text", [calling({"name": "f", "arguments": {}})], "invalid_request"),
]


@pytest.mark.parametrize(("messages", "code"), [case[1:] for case in MESSAGES], ids=[case[0] for case in MESSAGES])
def test_it_refuses_messages_that_are_none(place: Place, untouched: str, messages: Any, code: str) -> None:
    refused(place.chat(secret=untouched, messages=messages), "messages", code)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_it_refuses_a_body_that_is_no_request(place: Place, untouched: str) -> None:
    model = json.dumps(place.world.model).encode()
    good = json.dumps(place.body()).encode()
    bodies = [
        b"",
        b" ",
        b"null",
        b"[]",
        b'"text"',
        b"7",
        b"{",
        good[:-1],
        good + b"}",
        good + b" x",
        b"\xef\xbb\xbf\xff" + good,
        good.replace(b"Hello", b"half a character: \\ud83d"),
        b'{"model":NaN}',
        b"{'model':1}",
        b'{"model":' + model + b',"messages":[{"role":"user","content":"\xff\xfe"}]}',
        b'{"model":' + model + b',"messages":[{"role":"user","content":"x"}],"stop":"\xff"}',
        b'{"model":' + model + b',"messages":[{"role":"user","content":"x"}],"\xff":1}',
        good[:-1] + b',"response_format":{"type":"json_schema","json_schema":"\xff"}}',
        good[:-1] + b',"tools":[{"type":"function","function":{"name":"f","parameters":{"a":"\xff"}}}]}',
        *(good[:-1] + b',"%b":' % name + nested(50_000) + b"}" for name in (b"messages", b"tools", b"metadata", b"x")),
        good[:-1] + b',"response_format":{"type":"json_schema","json_schema":' + nested(50_000) + b"}}",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        nested(100_000),
        *(b'{"messages":[{"role":"user","content":"x"}]}', b'{"model":' + model + b"}"),
        *(b'{"model":null,"messages":[{"role":"user","content":"x"}]}', b'{"model":' + model + b',"messages":null}'),
    ]
    for body in bodies:
        answer = place.send(body, secret=untouched)
        assert answer.status == 400, (body[:200], answer.raw)
        assert answer.error["code"] in {"invalid_request", "unsupported_parameter"}
        assert len(answer.raw) < 1000
