"""What each protocol sends, refuses, and knows of aborting and counting."""

import json
from typing import Any

import msgspec
import pytest

from engines.protocols import PROTOCOLS, Attempt, Upstream

FIELDS: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "temperature": 0.5, "top_k": 4}
THEIRS = {"model": "theirs", "stream": "theirs", "max_tokens": 10**9, "rid": "theirs", "cache_salt": "theirs", "n": 99}


def upstream(name: str, **more: Any) -> Upstream:
    return Upstream(PROTOCOLS[name], "http://10.0.0.1:30000", "served", **more)


def attempt(**more: Any) -> Attempt:
    fields: dict[str, Any] = {
        "rid": "0f" * 16,
        "stream": True,
        "n": 1,
        "max_tokens": 64,
        "tenant": "acme",
        "salt": "acme",
    }
    return Attempt(**(fields | more))


def body(name: str, fields: dict[str, Any] = FIELDS, **more: Any) -> dict[str, Any]:
    made = PROTOCOLS[name].body(upstream(name), fields, attempt(**more))
    sent: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return sent


@pytest.mark.parametrize("name", PROTOCOLS)
def test_it_says_itself_what_is_headrace_s_to_say(name: str) -> None:
    sent = body(name, FIELDS | THEIRS, n=3)
    assert (sent["model"], sent["stream"], sent["n"]) == ("served", True, 3)
    assert sent[PROTOCOLS[name].max_tokens_field] == 64
    assert sent["stream_options"]["include_usage"] is True
    assert sent["temperature"] == 0.5
    if name in {"sglang", "vllm"}:
        assert sent["cache_salt"] == "acme"
        assert "cache_salt" not in body(name, salt=None)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_it_sends_no_stream_options_for_a_whole_answer(name: str) -> None:
    sent = body(name, stream=False)
    assert sent["stream"] is False
    assert not {"stream_options", "n"} & set(sent)


def test_it_names_an_attempt_where_the_engine_takes_a_name() -> None:
    assert body("sglang")["rid"] == body("vllm")["request_id"] == "0f" * 16
    assert "0f" * 16 not in str(body("openai")) + str(body("llamacpp"))


def test_it_asks_for_running_usage_where_there_is_one() -> None:
    for name in ("sglang", "vllm"):
        assert body(name)["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body("openai")["stream_options"] == {"include_usage": True}
    assert body("llamacpp")["timings_per_token"] is True
    assert body("llamacpp", stream=False)["timings_per_token"] is False


def test_it_translates_a_field_the_engine_calls_otherwise() -> None:
    sent = body("llamacpp", FIELDS | {"repetition_penalty": 1.1})
    assert sent["repeat_penalty"] == 1.1
    assert "repetition_penalty" not in sent


def test_it_refuses_what_an_engine_would_pass_over() -> None:
    fields = {"temperature": b"0.5", "top_k": b"4", "tool_choice": b'"required"'}
    refused = {name: protocol.refused(fields) for name, protocol in PROTOCOLS.items()}
    assert refused == {"sglang": None, "vllm": None, "llamacpp": "tool_choice", "openai": "top_k"}


def test_it_sends_nothing_an_engine_does_not_know() -> None:
    """What is left of such a field asks for nothing: the rest is refused before."""
    assert "top_k" not in body("openai")
    assert "tool_choice" not in body("llamacpp", FIELDS | {"tool_choice": "auto"})


def test_it_sends_no_tools_where_none_is_to_be_called() -> None:
    none: dict[str, Any] = {"tools": msgspec.Raw(b"[1]"), "tool_choice": msgspec.Raw(b'"none"')}
    assert PROTOCOLS["llamacpp"].refused(none) is None
    assert not {"tools", "tool_choice"} & set(body("llamacpp", FIELDS | none))
    assert {"tools", "tool_choice"} <= set(body("sglang", FIELDS | none))


def test_it_aborts_by_name_with_the_admin_s_key_before_the_pool_s() -> None:
    sglang = PROTOCOLS["sglang"]
    for keys, expected in (
        ({}, None),
        ({"api_key": "k"}, "Bearer k"),
        ({"api_key": "k", "admin_key": "a"}, "Bearer a"),
        ({"admin_key": "a"}, "Bearer a"),
    ):
        call = sglang.abort_request(upstream("sglang", **keys), "0f" * 16)
        assert call is not None
        url, headers, data = call
        assert (url, headers.get("authorization")) == ("http://10.0.0.1:30000/abort_request", expected)
        assert json.loads(data) == {"rid": "0f" * 16}
    others = [PROTOCOLS[name].abort_request(upstream(name), "0f" * 16) for name in ("vllm", "llamacpp", "openai")]
    assert others == [None] * 3


def test_it_counts_text_and_prompts_at_the_engine() -> None:
    for name in ("sglang", "vllm"):
        protocol = PROTOCOLS[name]
        text, prompt = (
            protocol.count_request(upstream(name), "é"),
            protocol.count_prompt_request(upstream(name), FIELDS),
        )
        assert text is not None
        assert prompt is not None
        assert text[0] == prompt[0] == "http://10.0.0.1:30000/tokenize"
        assert json.loads(text[1]) == {"model": "served", "prompt": "é", "add_special_tokens": False}
        assert json.loads(prompt[1]) == {"model": "served", "messages": FIELDS["messages"]}
    llamacpp = PROTOCOLS["llamacpp"].count_request(upstream("llamacpp"), "é")
    assert llamacpp is not None
    assert json.loads(llamacpp[1]) == {"content": "é"}
    assert PROTOCOLS["openai"].count_request(upstream("openai"), "é") is None
    assert PROTOCOLS["llamacpp"].count_prompt_request(upstream("llamacpp"), FIELDS) is None
    for protocol in PROTOCOLS.values():
        assert protocol.counted(b'{"tokens":[1,2,{"id":3}],"count":3}') == 3
        for nonsense in (b"", b"[]", b'{"tokens":7}', b"<html>"):
            with pytest.raises(msgspec.DecodeError):
                protocol.counted(nonsense)


def test_it_shows_the_pool_s_key_and_no_other() -> None:
    assert upstream("sglang", api_key="k", admin_key="a").headers() == {"authorization": "Bearer k"}
    assert upstream("sglang", admin_key="a").headers() == {}


def test_it_passes_a_priority_on_only_where_the_engine_was_started_for_it() -> None:
    for name, sent in (("sglang", 5), ("vllm", -5)):  # in vLLM the lower goes first
        ordered = upstream(name, orders_by_priority=True)
        assert PROTOCOLS[name].body(ordered, FIELDS, attempt(priority=5))["priority"] == sent
        assert "priority" not in PROTOCOLS[name].body(ordered, FIELDS, attempt())
        assert "priority" not in body(name, priority=5)
    for name in ("llamacpp", "openai"):
        assert "priority" not in PROTOCOLS[name].body(
            upstream(name, orders_by_priority=True), FIELDS, attempt(priority=5)
        )


def test_it_tells_sglang_whose_request_it_is_for_its_own_metrics() -> None:
    assert PROTOCOLS["sglang"].headers(attempt()) == {"x-custom-labels": '{"tenant":"acme"}'}
    assert [PROTOCOLS[name].headers(attempt()) for name in ("vllm", "llamacpp", "openai")] == [{}] * 3
