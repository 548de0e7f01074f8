"""Plain answers have the form of the real server's."""

import json
from typing import Any

from headrace_dev.simulator.process import ScriptedUpstream
from headrace_dev.simulator.tests.calling import ASKED, Call, body, events, fetch, said

ROLE = {"reasoning_content": None, "role": "assistant", "content": ""}


def test_it_streams_as_sglang_does(upstream: ScriptedUpstream) -> None:
    with Call(upstream, body(tokens=9, also={**ASKED, "max_tokens": 2, "rid": "a" * 32})) as call:
        chunks = events(call.read())
    assert call.whole
    assert call.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert {c["id"] for c in chunks[:-1]} == {"a" * 32}
    assert [c["choices"][0]["delta"] if c["choices"] else None for c in chunks[:-1]] == [
        ROLE,
        {"reasoning_content": None, "content": "tok0 "},
        {"reasoning_content": None, "content": "tok1 "},
        {"reasoning_content": None},
        None,
    ]
    assert [c["choices"][0]["finish_reason"] for c in chunks[:-2]] == [None, None, None, "length"]
    assert [c.get("usage", {}).get("completion_tokens") for c in chunks[:-1]] == [None, 1, 2, None, 2]
    assert chunks[-1] == "[DONE]"


def test_it_reports_no_usage_unasked(upstream: ScriptedUpstream) -> None:
    chunks = events(fetch(upstream, body(tokens=2)))
    assert not any("usage" in c for c in chunks[:-1])
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_it_counts_every_choice_once_and_the_prompt_once(upstream: ScriptedUpstream) -> None:
    chunks = events(fetch(upstream, body(tokens=3, prompt_tokens=7, cached_tokens=2, also={**ASKED, "n": 2})))
    last = {}
    for chunk in chunks[:-2]:
        if "usage" in chunk:
            last[chunk["choices"][0]["index"]] = chunk["usage"]["completion_tokens"]
    assert last == {0: 3, 1: 3}
    assert chunks[-2]["usage"]["completion_tokens"] == 6
    assert chunks[-2]["usage"]["total_tokens"] == 13
    whole = json.loads(fetch(upstream, body(stream=False, tokens=3, prompt_tokens=7, cached_tokens=2, also={"n": 2})))
    assert [c["message"]["content"] for c in whole["choices"]] == ["tok0 tok1 tok2 "] * 2
    assert whole["usage"] == chunks[-2]["usage"]


def test_it_answers_whole_as_it_streams(upstream: ScriptedUpstream) -> None:
    told: dict[str, Any] = {"text": ["你", "好", "🌍", "é"], "reasoning": 1}
    whole = json.loads(fetch(upstream, body(stream=False, **told)))
    assert whole["choices"][0]["message"]["content"] == "好🌍é"
    assert whole["choices"][0]["message"]["reasoning_content"] == "你"
    assert whole["usage"]["reasoning_tokens"] == 1
    assert said(events(fetch(upstream, body(**told)))) == "好🌍é"


def test_it_reports_a_repeated_prompt_as_cached_for_the_same_salt_only(upstream: ScriptedUpstream) -> None:
    def cached(salt: str, text: str) -> int:
        request = body(stream=False, more=text, tokens=1, also={"cache_salt": salt})
        usage = json.loads(fetch(upstream, request))["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    long = "river stone " * 50
    assert cached("acme", long) == 0
    assert cached("acme", long) == len(body(more=long, tokens=1)["messages"][0]["content"]) // 4 + 1 + 4 - 1
    assert cached("globex", long) == 0
    assert cached("acme", long + "and more") % 16 == 0 < cached("acme", long + "and else")


def test_it_counts_prompts_as_its_tokenizer_does(upstream: ScriptedUpstream) -> None:
    messages = [{"role": "user", "content": "how many tokens is this?"}]
    with Call(upstream, {"messages": messages}, "/v1/tokenize") as call:
        count = json.loads(call.read())["count"]
    assert json.loads(fetch(upstream, {"messages": messages}))["usage"]["prompt_tokens"] == count == 10


def test_it_sends_tool_arguments_in_pieces(upstream: ScriptedUpstream) -> None:
    calls = [{"name": "look", "arguments": [None, '{"a"', ":1}"]}]
    chunks = events(fetch(upstream, body(tool_calls=calls, also=ASKED)))
    functions = [c["choices"][0]["delta"]["tool_calls"][0]["function"] for c in chunks[1:4]]
    assert functions == [
        {"name": "look", "arguments": None},
        {"name": None, "arguments": '{"a"'},
        {"name": None, "arguments": ":1}"},
    ]
    assert chunks[4]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[5]["usage"]["completion_tokens"] == 2


def test_it_refuses_what_sglang_refuses_and_a_misspelt_script(upstream: ScriptedUpstream) -> None:
    for request, words in (
        ({"model": "m"}, "messages"),
        (body(tokns=3), "script:"),
        (body(tokens=1, more="x" * 5_000_000), "longer than the model's context"),
    ):
        with Call(upstream, request) as call:
            answer = json.loads(call.read())
        assert call.status == 400
        assert words in answer["message"]
    assert upstream.stats()["started"] == 0
    assert [one["how"] for one in upstream.requests()] == ["refused"] * 3
