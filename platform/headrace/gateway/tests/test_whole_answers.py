"""Whole answers: as an engine gives them, or put together from its stream where nothing else could stop it."""

import time
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place


@pytest.fixture(scope="module")
def models(place: Place) -> dict[str, str]:
    """One engine asked for whole answers, one that is asked for streams."""
    made = {
        "given": place.world.model,
        "assembled": place.add_model(url=f"{place.upstream.url}/", engine="llamacpp"),
    }
    place.wait_known(*made.values())
    return made


@pytest.fixture(params=["given", "assembled"])
def ask(request: pytest.FixtureRequest, place: Place, models: dict[str, str]) -> Any:
    """Ask for a scripted whole answer; `upstream_streams` says how it was got."""

    def ask(fields: dict[str, Any] | None = None, **script: Any) -> Answer:
        answer = place.scripted(fields={"model": models[request.param]} | (fields or {}), **script)
        assert answer.headers["content-type"] == "application/json"
        assert place.seen()["stream"] is (request.param == "assembled")
        return answer

    return ask


def test_it_gives_text_reasoning_and_usage_under_our_name(place: Place, ask: Any) -> None:
    answer = ask(tokens=5, reasoning=2, prompt_tokens=30, cached_tokens=8)
    assert answer.status == 200, answer.raw
    body = answer.json
    assert set(body) == {"id", "object", "created", "model", "choices", "usage"}
    assert (body["id"], body["object"]) == (f"chatcmpl-{answer.id}", "chat.completion")
    assert body["model"].startswith(place.world.model)
    [choice] = body["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == "tok2 tok3 tok4 "
    assert choice["message"]["reasoning_content"] == "tok0 tok1 "
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert answer.usage["prompt_tokens"] == answer.record["input_tokens"] == 30
    assert answer.usage["completion_tokens"] == answer.record["output_tokens"] == 5
    assert answer.record["cached_input_tokens"] == 8
    assert answer.record["reasoning_tokens"] == 2
    assert answer.record["usage_source"] == "reported"
    assert answer.record["tpot_ms"] is None


def test_it_gives_tool_calls(ask: Any) -> None:
    calls = [{"name": "weather", "arguments": [None, '{"city": "東', '京"}']}, {"name": "time", "arguments": ["{}"]}]
    answer = ask(tool_calls=calls, tokens=1)
    [choice] = answer.json["choices"]
    told = [(call["function"]["name"], call["function"]["arguments"]) for call in choice["message"]["tool_calls"]]
    assert told == [("weather", '{"city": "東京"}'), ("time", "{}")]
    assert all(
        call["id"].startswith("call_") and call["type"] == "function" for call in choice["message"]["tool_calls"]
    )
    assert choice["finish_reason"] == answer.record["finish_reason"] == "tool_calls"


def test_it_gives_an_answer_of_nothing(ask: Any) -> None:
    """As a model that thinks first answers a probe of one token: a whole answer, whose prompt is paid."""
    answer = ask(tokens=0, finish_reason="length", prompt_tokens=30)
    assert answer.status == 200, answer.raw
    [choice] = answer.json["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "length")
    record = answer.record
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == ("ok", 30, 0)


@pytest.mark.parametrize("script", [{"split": 7}, {"split_every": 1}, {"split_max": 3, "split": 1}])
def test_it_takes_any_split(ask: Any, script: dict[str, Any]) -> None:
    answer = ask(text=["你好", "🌍", " é", '"\\\n'], **script)
    assert (answer.status, answer.text) == (200, '你好🌍 é"\\\n')


def test_it_gives_large_answers(ask: Any) -> None:
    answer = ask(tokens=2, big_event=2**21)
    assert answer.status == 200
    assert len(answer.text) == 2**21 + len("tok1 ")
    assert answer.record["output_tokens"] == 2


@pytest.mark.parametrize(
    ("script", "status", "code", "recorded"),
    [
        ({"error_event_after": 3}, 502, "upstream_error", "error"),
        ({"drop_after": 3}, 502, "upstream_disconnected", "error"),
        ({"finish_reason": None}, 502, "upstream_disconnected", "incomplete"),
        ({"finish_reason": "abort"}, 502, "upstream_error", "error"),
        ({"queue_full": True}, 503, "no_capacity", "error"),
        ({"html": True}, 502, "upstream_error", "error"),
        ({"raw": []}, 502, "upstream_error", "error"),
    ],
)
def test_it_bills_nothing_of_what_nobody_got(
    ask: Any, script: dict[str, Any], status: int, code: str, recorded: str
) -> None:
    answer = ask(tokens=6, **script)
    assert answer.status == status, answer.raw
    assert answer.error["code"] in {code, "upstream_error"}
    record = answer.record
    assert (record["status"], record["input_tokens"], record["output_tokens"]) == (recorded, 0, 0)


def test_it_waits_no_longer_than_for_the_end_of_a_stream(place: Place, models: dict[str, str]) -> None:
    began = time.monotonic()
    answer = place.scripted(fields={"model": models["assembled"]}, tokens=3, linger_ms=15_000)
    assert (answer.status, answer.text) == (200, "tok0 tok1 tok2 ")
    assert time.monotonic() - began < 5
    place.upstream.wait_until_idle()


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": [{"index": [], "function": {}}]},
        {"tool_calls": [{"function": "f"}]},
        {"tool_calls": {}},
        [],
        "text",
    ],
)
def test_it_takes_no_nonsense_for_a_stream(place: Place, models: dict[str, str], delta: Any) -> None:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "logprobs": []}]}
    answer = place.events_from_upstream([chunk], model=models["assembled"])
    assert answer.status == 502
    assert answer.record["output_tokens"] == 0


@pytest.mark.parametrize("choices", ["empty", "null", "missing"])
def test_it_gives_no_answer_without_a_choice(place: Place, choices: str) -> None:
    answer = place.scripted(choices_empty=choices)
    assert (answer.status, answer.error["code"]) == (502, "upstream_error")
    assert answer.record["output_tokens"] == 0


def test_it_makes_arguments_text_and_hides_what_else_an_engine_says(place: Place) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": None}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {
        "id": "of-the-engine",
        "model": "/models/secret-finetune",
        "metadata": {"weight_version": "default", "host": "host-7"},
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    answer = place.scripted(status=200, body=body)
    assert answer.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == ""
    for hidden in ("of-the-engine", "secret-finetune", "host-7", "weight_version"):
        assert hidden not in answer.raw.decode()


@pytest.mark.parametrize("calls", ['"arguments":null', [7], [{"function": 7}], {"a": 1}])
def test_it_drops_calls_that_are_none(place: Place, calls: Any) -> None:
    """No client takes one without a name."""
    message = {"content": 'not a call: "arguments":null', "tool_calls": calls, "audio": {"arguments": None}}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": None}
    given = place.scripted(status=200, body=body).json["choices"][0]["message"]
    assert (given.get("tool_calls"), given["content"]) == (None, message["content"])


def test_it_refuses_several_choices_where_the_engine_counts_only_one(place: Place, models: dict[str, str]) -> None:
    answer = place.chat(model=models["assembled"], n=2)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", "n")
    assert len(place.chat(n=3).json["choices"]) == 3
