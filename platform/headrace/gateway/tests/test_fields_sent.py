"""What reaches the upstream: the client's checked fields, and what is Headrace's alone to say."""

import json
import re
from typing import Any

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase, CompletionCreateParamsNonStreaming

from engines.protocols.base import EXTENSIONS
from headrace.gateway.dialects.chat_completions.fields import CHAT
from headrace.gateway.dialects.chat_completions.neutral_values import NEUTRAL
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.tests.calling import Answer, Place

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
PASSED: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "frequency_penalty": -0.5,
    "presence_penalty": 0.5,
    "stop": ["\n", "END"],
    "seed": -7,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "top_logprobs": 3,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "parallel_tool_calls": False,
    "reasoning_effort": "low",
    "top_k": 40,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "chat_template_kwargs": {"enable_thinking": False},
}
OURS = {"model", "messages", "stream", "max_tokens", "rid", "cache_salt"}


@pytest.fixture(scope="module")
def models(place: Place) -> dict[str, str]:
    made = {
        "shared": place.add_model(cache_scope="shared"),
        "dropping": place.add_model(unknown_fields="drop"),
        "hosted": place.add_model(provider=True),
        "llamacpp": place.add_model(url=f"{place.upstream.url}/", engine="llamacpp"),
        "vllm": place.add_model(url=f"{place.upstream.url}//", engine="vllm"),
        "benchmarked": place.add_model(ignore_eos=True),
        "benchmarked, dropping": place.add_model(ignore_eos=True, unknown_fields="drop"),
        "benchmarked and hosted": place.add_model(provider=True, ignore_eos=True),
        "hosted and dropping": place.add_model(provider=True, unknown_fields="drop"),
        "small": place.add_model(context_window=2000, default_max_tokens=500),
    }
    place.wait_known(*made.values())
    return made


def sent(place: Place, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    """The body the upstream got for a chat with these fields."""
    answer = place.chat(**fields)
    assert answer.status == status, answer.raw
    body: dict[str, Any] = place.seen()["body"]
    return body


def test_it_sends_what_is_checked_and_ours(place: Place) -> None:
    assert set(sent(place)) == OURS
    body = sent(place, **PASSED)
    assert set(body) == OURS | set(PASSED)
    assert {name: body[name] for name in PASSED} == PASSED


def test_it_sends_null_for_nothing(place: Place) -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        [*PASSED, "n", "max_tokens", "user", "metadata", "stream", "stream_options"]
    )
    # Also fields that are not known: clients of some languages write every field of OpenAI's.
    nothing |= dict.fromkeys(["functions", "function_call", "audio", "web_search_options", "rid"])
    assert set(sent(place, **nothing)) == OURS


def test_it_names_each_attempt_by_32_random_digits_and_salts_by_tenant(place: Place) -> None:
    bodies = [sent(place, user="alice", metadata={"rid": "job"}) for _ in range(5)]
    assert all(re.fullmatch("[0-9a-f]{32}", body["rid"]) for body in bodies)
    assert len({body["rid"] for body in bodies}) == 5
    assert {body["cache_salt"] for body in bodies} == {place.world.tenant.pk}
    assert {body["model"] for body in bodies} == {"scripted"}


def test_it_sends_no_salt_where_the_route_shares_its_cache(place: Place, models: dict[str, str]) -> None:
    body = sent(place, model=models["shared"])
    assert set(body) == OURS - {"cache_salt"}


def test_it_always_bounds_the_answer(place: Place, models: dict[str, str]) -> None:
    assert sent(place)["max_tokens"] == 1000  # the model's default
    assert sent(place, max_tokens=7)["max_tokens"] == 7
    assert sent(place, max_completion_tokens=8)["max_tokens"] == 8
    assert sent(place, max_tokens=9, max_completion_tokens=9)["max_tokens"] == 9
    assert sent(place, max_tokens=1)["max_tokens"] == 1
    small = models["small"]
    assert sent(place, model=small)["max_tokens"] == 500
    assert 100 < sent(place, model=small, content="x" * 6000)["max_tokens"] < 500, "what the window leaves"
    assert sent(place, model=small, content="x" * 60_000)["max_tokens"] == 1, "the engine decides on the prompt"


def test_it_asks_for_no_more_by_itself_than_the_window_leaves(place: Place) -> None:
    """Engines refuse what does not fit: what nobody asked for must not be why."""
    window = 2000
    counting = place.add_model(context_window=window, default_max_tokens=1500)
    hosted = place.add_model(provider=True, context_window=window, default_max_tokens=1500)
    place.wait_known(counting, hosted)
    answer = place.chat("x" * 4000, model=counting)
    assert answer.usage is not None
    assert place.seen()["body"]["max_tokens"] == window - answer.usage["prompt_tokens"] - 8
    # Estimated at 3.5 bytes a token, of which a provider may find more.
    assert 250 < sent(place, model=hosted, content="x" * 4000)["max_completion_tokens"] < window - 4000 // 3
    assert sent(place, model=hosted, content="x" * 400)["max_completion_tokens"] == 1500


def test_it_sends_the_number_of_choices_once_there_are_more(place: Place) -> None:
    assert "n" not in sent(place, n=1)
    assert sent(place, n=3)["n"] == 3


def test_it_asks_for_usage_of_every_stream(place: Place, models: dict[str, str]) -> None:
    ours = {"include_usage": True, "continuous_usage_stats": True}
    for options in ({}, {"include_usage": False}, {"continuous_usage_stats": False, "made_up": 1}, None):
        assert sent(place, stream=True, stream_options=options)["stream_options"] == ours
    hosted = sent(place, stream=True, model=models["hosted"])
    assert hosted["stream_options"] == {"include_usage": True}


def test_it_sends_a_provider_nothing_beyond_openai_s_schema(place: Place, models: dict[str, str]) -> None:
    body = sent(place, model=models["hosted"], max_tokens=5)
    assert set(body) == {"model", "messages", "stream", "stream_options", "max_completion_tokens"}
    assert (body["model"], body["max_completion_tokens"]) == ("hosted", 5)
    refused = place.chat(model=models["hosted"], top_k=5)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (400, "unsupported_parameter", "top_k")


ABUSE = ("rid", "cache_salt", "extra_key", "priority", "lora_path", "custom_logit_processor", "input_ids", "ignore_eos")


def test_it_drops_unknown_fields_where_the_route_says_so(place: Place, models: dict[str, str]) -> None:
    unknown: dict[str, Any] = dict.fromkeys([*ABUSE, "functions", "guided_json", "foo", "data_parallel_rank"], "theirs")
    body = sent(place, model=models["dropping"], **unknown)
    assert set(body) == OURS
    assert "theirs" not in str(body)


def test_it_drops_what_cannot_change_the_answer(place: Place) -> None:
    harmless: dict[str, Any] = {
        "store": True,
        "service_tier": "auto",
        "safety_identifier": "u",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "prediction": {"type": "content", "content": "x"},
        "modalities": ["text"],
        "verbosity": "medium",
    }
    assert set(sent(place, **harmless)) == OURS


def test_it_rebuilds_messages_from_what_it_checked(place: Place) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "In French."}]},
        {
            # As clients of other APIs mark what shall be cached.
            "role": "user",
            "content": [{"type": "text", "text": "Hm?", "cache_control": {"type": "ephemeral"}}],
            "cache_control": {"type": "ephemeral"},
        },
        {"role": "user", "name": "bob", "content": "你好 🌍 \u2028 \x00"},
        {
            # As the SDK gives an answer back.
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [{"x": 1}],
            "audio": None,
            "function_call": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x": 1}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "12 °C"}]},
        {"role": "assistant", "content": "Douze.", "reasoning_content": "Hm."},
        {"role": "assistant", "content": "Treize.", "reasoning": "Oh.", "reasoning_details": [{"x": 1}]},
        {"role": "user", "content": "Merci"},
    ]
    got = sent(place, messages=messages)["messages"]
    roles = [message["role"] for message in messages]
    assert [message["role"] for message in got] == ["system" if role == "developer" else role for role in roles]
    assert got[2] == {"role": "user", "content": [{"type": "text", "text": "Hm?"}]}
    assert got[3] == messages[3]
    assert got[4]["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    assert set(got[4]) == {"role", "content", "tool_calls"}
    assert got[4]["content"] is None
    assert got[5] == messages[5]
    assert got[6]["reasoning_content"] == "Hm."
    assert got[7] == {"role": "assistant", "content": "Treize.", "reasoning": "Oh."}


def test_it_gives_google_s_models_back_what_they_signed(place: Place, models: dict[str, str]) -> None:
    """They refuse a call of theirs that comes back without; some clients keep it in the id, which gets long."""
    signed = {"google": {"thought_signature": "c2ln" * 500}}
    long_id = "call_1__thought__" + "c2ln" * 500
    call = {"id": long_id, "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signed}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hm?"},
        {"role": "assistant", "content": None, "tool_calls": [call], "extra_content": signed},
        {"role": "tool", "tool_call_id": long_id, "content": "12"},
    ]
    got = sent(place, model=models["hosted"], messages=messages)["messages"]
    assert got[1] == messages[1]
    assert got[2] == messages[2]


def test_it_takes_back_what_libraries_add_to_an_answer(place: Place) -> None:
    added = {"provider_specific_fields": {"x": 1}, "thinking_blocks": [{"x": 1}], "parsed": {"x": 1}}
    echo = {"role": "assistant", "content": "12", "tool_calls": [], **added}
    got = sent(place, messages=[{"role": "user", "content": "Hm?"}, echo, {"role": "user", "content": "Why?"}])
    assert got["messages"][1] == {"role": "assistant", "content": "12"}


def test_it_leaves_out_what_asks_for_nothing(place: Place) -> None:
    """Some upstreams refuse an empty list of tools, and a choice among none."""
    nothing: dict[str, Any] = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "stop": []}
    assert set(sent(place, **nothing, logit_bias={}, top_k=0)) == OURS
    assert sent(place, tools=[TOOL], tool_choice="auto")["tool_choice"] == "auto"
    assert sent(place, tool_choice="required")["tool_choice"] == "required"


def test_it_asks_for_the_likeliest_token_as_engines_take_it(place: Place) -> None:
    assert 0 < sent(place, top_p=0)["top_p"] < 0.001


@pytest.mark.parametrize("nothing", ["", " ", None])
def test_it_says_in_json_that_a_call_had_no_arguments(place: Place, nothing: str | None) -> None:
    """As it was streamed to the client; engines that read it fail at each further turn."""
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": nothing}}
    echo = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "12:00"}
    [_, got, _] = sent(place, messages=[{"role": "user", "content": "Hm?"}, echo, result])["messages"]
    assert got["tool_calls"][0]["function"] == {"name": "now", "arguments": "{}"}


def test_it_sends_no_empty_stop(place: Place) -> None:
    assert "stop" not in sent(place, stop="")
    assert "stop" not in sent(place, stop=["", ""])
    assert sent(place, stop=["", "END"])["stop"] == ["END"]
    assert sent(place, stop=" ")["stop"] == " "


@pytest.mark.parametrize("name", ["content", "reasoning_content", "reasoning", "refusal", "name"])
def test_it_measures_every_text_in_bytes(name: str) -> None:
    body = {"model": "m", "messages": [{"role": "assistant", name: "漢字"}]}
    assert parse(json.dumps(body).encode(), []).content.text_bytes == 6


def test_it_keeps_user_metadata_and_the_client_s_id_as_labels(place: Place) -> None:
    def labels(answer: Answer) -> dict[str, str]:
        found: dict[str, str] = answer.record["labels"]
        return found

    answer = place.chat(user="alice", metadata={"job": "7", "ключ": "🌍"}, headers={"x-request-id": "mine-1"})
    assert labels(answer) == {
        "user": "alice",
        "metadata.job": "7",
        "metadata.ключ": "🌍",
        "client_request_id": "mine-1",
    }
    assert answer.id != "mine-1"
    assert labels(place.chat()) == {}
    assert len(labels(place.chat(headers={"x-request-id": "x" * 5000}))["client_request_id"]) == 128


ALTERNATIVES: dict[str, list[Any]] = {
    "n": [1.0],
    "presence_penalty": [0.0],
    "repetition_penalty": [1.0],
    "min_p": [0.0],
}
CASES = [(name, value) for name, values in NEUTRAL.items() for value in [*values, *ALTERNATIVES.get(name, ()), None]]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name}={json.dumps(value)}" for name, value in CASES])
def test_it_never_refuses_a_neutral_value(place: Place, models: dict[str, str], name: str, value: Any) -> None:
    """Whatever engine is to take it; one that does not know the field does not get it."""
    ours = name in {"stream", "stream_options", "tools", "tool_choice", "timings_per_token"}  # which we may send
    for model in ("hosted", "llamacpp", "vllm"):
        fields: dict[str, Any] = {"tools": [TOOL], name: value}
        body = sent(place, model=models[model], **fields)
        assert ours or (name in EXTENSIONS and model != "hosted") or name not in body


def test_it_knows_a_neutral_value_of_every_field_that_has_one() -> None:
    """Of OpenAI's own parameters these have none but null: a value of theirs always asks for something."""
    always = {"audio", "max_completion_tokens", "max_tokens", "messages", "model", "moderation", "prediction"}
    always |= {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "seed"}
    always |= {"temperature", "top_p", "web_search_options"}
    names = set(CompletionCreateParamsNonStreaming.__annotations__) | set(CompletionCreateParamsBase.__annotations__)
    assert names - set(NEUTRAL) <= always
    assert set(CHAT) - set(NEUTRAL) <= always


@pytest.mark.parametrize("choice", ["auto", "none", {"type": "auto"}, {"type": "none"}])
def test_it_serves_a_choice_that_leaves_tools_alone_wherever_it_would_without_it(
    place: Place, models: dict[str, str], choice: Any
) -> None:
    """As LlamaIndex, pydantic-ai, Vercel's AI SDK and openai-node's runTools write it beside tools."""
    kind = choice if isinstance(choice, str) else choice["type"]
    body = sent(place, model=models["llamacpp"], tools=[TOOL], tool_choice=choice)
    assert ("tools" in body, "tool_choice" in body) == (kind == "auto", False)
    assert sent(place, tools=[TOOL], tool_choice=choice)["tool_choice"] == kind
    for forced in ("required", {"type": "required"}, {"type": "function", "function": {"name": "weather"}}):
        refused = place.chat(model=models["llamacpp"], tools=[TOOL], tool_choice=forced)
        assert (refused.status, refused.error["param"]) == (400, "tool_choice")


def test_it_takes_a_whole_number_however_it_is_written(place: Place) -> None:
    body = place.body(seed=7, top_k=40, top_logprobs=2, logprobs=True, max_tokens=5)
    raw = json.dumps(body).replace(": 7", ": 7.0").replace(": 40", ": 4e1").replace(": 2", ": 2.0")
    assert place.send(raw.replace('"max_tokens": 5', '"max_tokens": 5.0, "n": 2.00').encode()).status == 200
    got = place.seen()["body"]
    assert [got[name] for name in ("seed", "top_k", "top_logprobs", "max_tokens", "n")] == [7, 40, 2, 5, 2]
    assert all(type(got[name]) is int for name in ("seed", "top_k", "top_logprobs", "max_tokens", "n"))


@pytest.mark.parametrize("served_by", ["sglang", "llamacpp"])
def test_it_keeps_the_null_of_a_message_without_content(place: Place, models: dict[str, str], served_by: str) -> None:
    """llama.cpp refuses a message with neither content nor calls, but not one whose content is null."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    echoes: list[dict[str, Any]] = [
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": None},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "user", "content": "Hm?"},
    ]
    model = place.world.model if served_by == "sglang" else models[served_by]
    assert sent(place, model=model, messages=echoes)["messages"] == echoes
    bare = [{"role": "assistant"}, {"role": "assistant", "tool_calls": []}, {"role": "assistant", "refusal": "No."}]
    got = sent(place, model=model, messages=[*bare, echoes[-1]])["messages"]
    assert [message["content"] for message in got] == [None, None, None, "Hm?"]


def test_it_lets_benchmarks_ignore_the_end_where_the_route_does(place: Place, models: dict[str, str]) -> None:
    """As guidellm and sglang.bench_serving ask: every field they send, unchanged."""
    asked: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "max_completion_tokens": 7,
        "temperature": 0.0,
        "stop": None,
        "ignore_eos": True,
    }
    for name in ("benchmarked", "benchmarked, dropping"):
        body = sent(place, model=models[name], **asked)
        assert (body["ignore_eos"], body["max_tokens"]) == (True, 7)
        assert "ignore_eos" not in sent(place, model=models[name], ignore_eos=False)
    assert "ignore_eos" not in sent(place, model=models["dropping"], **asked)
    for model in (place.world.model, models["benchmarked and hosted"]):
        refused = place.chat(model=model, **asked)
        assert (refused.status, refused.error["code"]) == (400, "unsupported_parameter")
        assert refused.error["param"] == "ignore_eos"
    refused = place.chat(model=models["benchmarked"], ignore_eos="yes")
    assert (refused.status, refused.error["param"]) == (400, "ignore_eos")


@pytest.mark.parametrize("name", ["structured_outputs", "reasoning", "guided_json", "regex", "a_field_of_tomorrow"])
@pytest.mark.parametrize("empty", ["", [], {}], ids=str)
def test_it_never_refuses_what_is_empty_of_a_field_it_does_not_know(place: Place, name: str, empty: Any) -> None:
    assert name not in sent(place, **{name: empty})
    assert place.chat(web_search_options={}).status == 400  # which asks for a search
