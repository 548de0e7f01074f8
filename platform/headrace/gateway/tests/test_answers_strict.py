"""Whatever an engine omits, empties or calls otherwise: every event and answer is one that all SDKs take."""

import base64
import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from headrace.gateway.answers.finish_reasons import _FAILURES, _KNOWN
from headrace.gateway.tests.calling import Answer, Place
from headrace.gateway.tests.sdk_schemas import check_completion, check_stream

USAGE = {"prompt_tokens": 30, "completion_tokens": 4}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("weather", "time", "get", "get_time")]


@pytest.fixture(scope="module")
def assembled(place: Place) -> str:
    """A model whose whole answers are put together from a stream."""
    name = place.add_model(url=f"{place.upstream.url}/", engine="llamacpp")
    place.wait_known(name)
    return name


def stream(place: Place, *choices: Any, beside: dict[str, Any] | None = None, **fields: Any) -> Answer:
    """The answer to a stream of events with one choice each; of a list, of those choices."""
    events = [{"choices": each if isinstance(each, list) else [each], **(beside or {})} for each in choices]
    return send(place, events, stream=True, **fields)


def send(place: Place, events: list[Any], **fields: Any) -> Answer:
    segments = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
    raw = [base64.b64encode(segment.encode()).decode() for segment in segments]
    return place.scripted(fields=fields, raw=raw)


def whole(place: Place, body: Any, **fields: Any) -> Answer:
    return place.scripted(fields=fields, status=200, body=json.dumps(body), content_type="application/json")


def taken(place: Place, assembled: str, *choices: Any, **fields: Any) -> list[ChatCompletion]:
    """What SDKs make of a stream, and of the whole answer that is put together from it."""
    streamed = stream(place, *choices, **fields)
    assert streamed.is_done, streamed.raw
    events = [{"choices": each if isinstance(each, list) else [each]} for each in choices]
    put_together = send(place, events, model=assembled, **fields)
    assert put_together.status == 200, put_together.raw
    return [check_stream(streamed.events), check_completion(put_together.raw)]


def calls_of(final: ChatCompletion) -> list[tuple[str, str]]:
    """Names and arguments of the calls of the one choice."""
    [choice] = final.choices
    calls: list[Any] = list(choice.message.tool_calls or ())
    return [(call.function.name, call.function.arguments) for call in calls]


def delta(delta: Any, reason: Any = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason}


ODD_DELTAS: dict[str, Any] = {
    "nothing": {},
    "null": None,
    "no role": {"content": "x"},
    "a role of another API": {"role": "model", "content": "x"},
    "an empty role": {"role": "", "content": "x"},
    "a null role": {"role": None, "content": "x"},
    "content in parts": {"content": [{"type": "text", "text": "x"}]},
    "content that is an object": {"content": {"text": "x"}},
    "a refusal that is false": {"content": "x", "refusal": False},
    "a refusal": {"refusal": "No."},
    "empty calls": {"content": "x", "tool_calls": []},
    "null calls": {"content": "x", "tool_calls": None, "function_call": None, "audio": None, "annotations": None},
    "sound": {"content": "x", "audio": {"id": "a"}},
    "sources of another form": {"content": "x", "annotations": [{"type": "file_citation"}, 7, {"url_citation": {}}]},
    "sources without places": {"content": "x", "annotations": [{"url_citation": {"url": "http://a.example"}}]},
    "thoughts": {"reasoning": "hm", "reasoning_content": "hm"},
    "thoughts of an odd form": {"reasoning": {"text": "hm"}, "reasoning_content": ["hm"]},
    "more": {"content": "x", "token_ids": [1], "provider_specific_fields": {"a": 1}},
}


@pytest.mark.parametrize("name", ODD_DELTAS)
@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}, {"index": 3}, {"index": -1}], ids=str)
def test_it_gives_every_event_in_the_form_of_the_sdks(
    place: Place, assembled: str, name: str, index: dict[str, Any]
) -> None:
    odd = index | {"delta": ODD_DELTAS[name], "logprobs": None}
    for final in taken(
        place, assembled, odd, odd, index | {"delta": {"content": "end"}}, index | {"finish_reason": "eos"}
    ):
        [choice] = final.choices
        assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
        assert (choice.message.content or "").endswith("end")
        assert (choice.message.refusal or "") == ("No.No." if name == "a refusal" else "")


@pytest.mark.parametrize("name", ODD_DELTAS)
@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}, {"index": "0"}], ids=str)
def test_it_gives_every_whole_answer_in_the_form_of_the_sdks(place: Place, name: str, index: dict[str, Any]) -> None:
    message = ODD_DELTAS[name] or {}
    final = check_completion(whole(place, {"choices": [index | {"message": message, "finish_reason": "EOS"}]}).raw)
    [choice] = final.choices
    assert (choice.index, choice.message.role, choice.finish_reason) == (0, "assistant", "stop")
    assert choice.message.content == ("x" if "content" in message else None)


@pytest.mark.parametrize(
    "logprobs",
    [
        {},
        [],
        "x",
        {"content": None},
        {"content": []},
        {"content": [{"token": "a", "logprob": -0.5}]},
        {"content": [{"token": "a", "logprob": None, "bytes": "a", "top_logprobs": None}, 7]},
        {"content": [{"token": None, "logprob": 0, "top_logprobs": [{"token": "b"}, None]}], "refusal": [{}]},
        {"tokens": ["a", "b"], "token_logprobs": [None, -1.5], "top_logprobs": [None, {"b": -1.5, "c": -2}]},
    ],
    ids=str,
)
def test_it_gives_logprobs_in_the_form_of_the_sdks(place: Place, assembled: str, logprobs: Any) -> None:
    choice = delta({"role": "assistant", "content": "ab"}) | {"logprobs": logprobs}
    taken(place, assembled, choice, delta({}, "stop"))
    message = {"message": {"content": "ab"}, "logprobs": logprobs, "finish_reason": "stop"}
    check_completion(whole(place, {"choices": [message]}).raw)


def call(
    index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    """A piece of a call, without what is None."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    given = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return given | {"function": function} | more


ONE = [("weather", '{"city":"Oslo"}')]
TWO = [*ONE, ("time", "{}")]
CALLS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "as OpenAI": ([call(0, "a", "weather", "", type="function"), call(0, arguments='{"city":"Oslo"}')], ONE),
    "without anything": ([call(name="weather", arguments='{"city":'), call(arguments='"Oslo"}')], ONE),
    "each whole, without anything": ([call(name=name, arguments=text) for name, text in TWO], TWO),
    "one tool twice": ([call(name="time", arguments="{}"), call(name="time", arguments="{}")], [TWO[1], TWO[1]]),
    "one index for all": ([call(0, f"c{place}", *each) for place, each in enumerate(TWO)], TWO),
    "one index and no id": ([call(0, None, *each) for each in TWO], TWO),
    "one id for all": ([call(place, "a", *each) for place, each in enumerate(TWO)], TWO),
    "one id, and no index": ([call(None, "a", *each) for each in TWO], TWO),
    "empty ids": ([call(place, "", *each) for place, each in enumerate(TWO)], TWO),
    "from 1": ([call(place + 1, f"c{place}", *each) for place, each in enumerate(TWO)], TWO),
    "sparse": ([call(place * 7, f"c{place}", *each) for place, each in enumerate(TWO)], TWO),
    "numbers for ids": ([call(place, place, *each) for place, each in enumerate(TWO)], TWO),
    "the id repeated": ([call(0, "a", "weather", '{"city":'), call(0, "a", None, '"Oslo"}')], ONE),
    "all repeated": ([call(0, "a", "weather", '{"city":'), call(0, "a", "weather", '"Oslo"}')], ONE),
    "all repeated, and an empty end": ([call(0, "a", *ONE[0]), call(0, "a", "weather", "")], ONE),
    "a name in pieces": ([call(0, "a", "wea"), call(0, None, "ther"), call(0, arguments=ONE[0][1])], ONE),
    "a name that grows": ([call(0, "a", "wea"), call(0, "a", "weather"), call(0, arguments=ONE[0][1])], ONE),
    "a name that begins another": ([call(0, "a", "get", ""), call(0, None, "_time"), call(0, arguments="{}")],
                                   [("get_time", "{}")]),
    "the shorter name": ([call(0, "a", "get", ""), call(0, arguments="{}")], [("get", "{}")]),
    "the name after its arguments": ([call(0, "a", None, '{"city":"Oslo"}'), call(0, None, "weather")], ONE),
    "the id later": ([call(0, None, "weather", ""), call(0, "a", None, '{"city":"Oslo"}')], ONE),
    "a null type and name": ([call(0, "a", *ONE[0], type="function"), {"index": 0, "id": None, "type": None,
                              "function": {"name": None, "arguments": ""}}], ONE),
    "arguments as an object": ([call(0, "a", "weather", {"city": "Oslo"})], ONE),
    "null arguments": ([{"index": 0, "id": "a", "function": {"name": "weather", "arguments": None}},
                        call(0, arguments='{"city":"Oslo"}')], ONE),
    "no function around it": ([{"name": "weather", "arguments": {"city": "Oslo"}}], ONE),
    "parameters": ([{"index": 0, "function": {"name": "weather", "parameters": {"city": "Oslo"}}}], ONE),
    "no arguments at all": ([call(0, "a", "get")], [("get", "")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("together", [False, True], ids=["an event each", "in one event"])
def test_it_gives_each_call_a_number_an_id_a_type_and_its_name_once(
    place: Place, assembled: str, name: str, together: bool
) -> None:
    pieces, wanted = CALLS[name]
    events = [delta({"tool_calls": each}) for each in ([pieces] if together else [[piece] for piece in pieces])]
    for final in taken(place, assembled, *events, delta({}, "tool_use"), tools=TOOLS):
        assert (calls_of(final), final.choices[0].finish_reason) == (wanted, "tool_calls")


def test_it_gives_the_calls_of_a_whole_answer_ids_and_text(place: Place) -> None:
    calls = [
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
        {"id": "a", "type": "function", "function": {"name": "time", "arguments": None}},
        {"id": "a", "function": {"name": "time"}},
        {"id": "", "index": 3, "name": "get", "arguments": "{}"},
    ]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_use"}]}
    final = check_completion(whole(place, body).raw)
    assert calls_of(final) == [*ONE, ("time", ""), ("time", ""), ("get", "{}")]
    assert final.choices[0].finish_reason == "tool_calls"


def test_it_gives_the_old_function_call_as_a_call_of_a_tool(place: Place, assembled: str) -> None:
    pieces = [{"function_call": {"name": "weather"}}, {"function_call": {"arguments": '{"city":"Oslo"}'}}]
    for final in taken(place, assembled, *map(delta, pieces), delta({}, "function_call")):
        assert (calls_of(final), final.choices[0].finish_reason) == (ONE, "tool_calls")
    message = {"content": None, "function_call": {"name": "weather", "arguments": {"city": "Oslo"}}}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]}
    assert calls_of(check_completion(whole(place, body).raw)) == ONE


OTHER_WORDS = ["STOP", "FinishReason.STOP", "FINISH_REASON_STOP", "end-turn", "Max Tokens", "MAX_TOKENS", "SAFETY"]


@pytest.mark.parametrize("word", [*_KNOWN, *OTHER_WORDS, {"type": "length", "length": 5}], ids=str)
def test_it_says_in_openai_s_words_why_an_answer_ended_and_records_the_engine_s(
    place: Place, assembled: str, word: Any
) -> None:
    answer = stream(place, delta({"content": "x"}), delta({}, word))
    [choice] = check_stream(answer.events).choices
    assert answer.record["finish_reason"] == (word["type"] if isinstance(word, dict) else word)
    given = whole(place, {"choices": [{"message": {"content": "x"}, "finish_reason": word}], "usage": USAGE})
    assert check_completion(given.raw).choices[0].finish_reason == choice.finish_reason
    assert given.record["finish_reason"] == answer.record["finish_reason"]
    made = send(place, [{"choices": [delta({"content": "x"})]}, {"choices": [delta({}, word)]}], model=assembled)
    assert check_completion(made.raw).choices[0].finish_reason == choice.finish_reason
    assert made.record["finish_reason"] == answer.record["finish_reason"]


@pytest.mark.parametrize(("word", "reason"), [
    ("eos", "stop"), ("eos_token", "stop"), ("end_turn", "stop"), ("stop_sequence", "stop"), ("COMPLETE", "stop"),
    ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"), ("tool_use", "tool_calls"),
    ("function_call", "tool_calls"), ("SAFETY", "content_filter"), ("RECITATION", "content_filter"),
    ("refusal", "content_filter"), ("content_filter", "content_filter"),
])  # fmt: skip
def test_it_knows_what_the_words_mean(place: Place, word: str, reason: str) -> None:
    answer = stream(place, delta({"content": "x"}, word))
    assert check_stream(answer.events).choices[0].finish_reason == reason


@pytest.mark.parametrize("word", [*sorted(_FAILURES), "ABORT", "FinishReason.ERROR", "a word nobody knows", 7], ids=str)
def test_it_invents_no_reason_for_an_answer_that_failed(place: Place, assembled: str, word: Any) -> None:
    answer = stream(place, delta({"content": "x"}), delta({}, word))
    assert (answer.is_done, answer.text) == (False, "x")
    assert answer.error["type"] == "server_error"
    assert answer.record["status"] in {"error", "incomplete"}
    assert answer.record["finish_reason"] == str(word)
    body = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": word}], "usage": USAGE}
    made = send(place, [{"choices": [delta({"content": "x"})]}, {"choices": [delta({}, word)]}], model=assembled)
    for failed in (whole(place, body), made):
        assert (failed.status, failed.record["output_tokens"]) == (502, 0)
        assert failed.record["finish_reason"] == str(word)


@pytest.mark.parametrize("word", [None, "", "null", "FINISH_REASON_UNSPECIFIED", {}, False], ids=str)
def test_it_goes_on_where_the_answer_is_not_said_to_have_ended(place: Place, word: Any) -> None:
    answer = stream(place, delta({"content": "x"}, word), delta({"content": "y"}, word), delta({}, "stop"))
    assert check_stream(answer.events).choices[0].message.content == "xy"
    unended = stream(place, delta({"content": "x"}, word), delta({"content": "y"}, word))
    assert (unended.is_done, unended.record["status"], unended.record["finish_reason"]) == (False, "incomplete", None)


BESIDE = {
    "system_fingerprint": "fp_1",
    "citations": ["http://a.example", "http://b.example"],
    "search_results": [{"title": "A\u2028", "url": "http://a.example", "date": None}],
}
HIDDEN = {"id": "hidden-1", "model": "hidden-2", "metadata": "hidden-3", "provider": "hidden-4", "service_tier": "x"}
WRONG = {"system_fingerprint": 7, "citations": "none", "search_results": None}


def test_it_passes_what_is_said_beside_the_choices(place: Place, assembled: str) -> None:
    choices = [delta({"content": "x"}), delta({}, "stop")]
    answer = stream(place, *choices, beside=BESIDE | HIDDEN)
    check_stream(answer.events)
    assert all({name: event.get(name) for name in BESIDE} == BESIDE for event in answer.events)
    assert all("\u2028" not in line for line in answer.raw.decode().split("\n"))
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], **BESIDE, **HIDDEN}
    made = send(place, [{"choices": [choice], **BESIDE, **HIDDEN} for choice in choices], model=assembled)
    for given in (whole(place, body), made):
        check_completion(given.raw)
        assert {name: given.json.get(name) for name in BESIDE} == BESIDE
    for told in (answer, made):
        assert b"hidden" not in told.raw
        assert b"service_tier" not in told.raw


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}], ids=["", "usage"])
def test_it_passes_what_is_said_in_events_without_choices(place: Place, options: dict[str, Any]) -> None:
    sources: dict[str, Any] = {"choices": [], "citations": ["http://a.example"], "usage": USAGE}
    events = [{"choices": [delta({"content": "x"})]}, {"choices": [delta({}, "stop")]}, sources]
    answer = send(place, events, stream=True, **options)
    check_stream(answer.events)
    assert answer.events[-1]["citations"] == ["http://a.example"]
    assert len(answer.events) == 3
    early = send(place, [sources, *events[:2], sources], stream=True, **options)
    assert [event.get("citations") for event in early.events[:2]] == [["http://a.example"], None]
    assert len(early.events) == len(options) + 2


def test_it_drops_what_is_said_beside_them_in_a_form_nobody_knows(place: Place) -> None:
    answer = stream(place, delta({"content": "x"}), delta({}, "stop"), beside=WRONG)
    check_stream(answer.events)
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], **WRONG}
    given = whole(place, body)
    check_completion(given.raw)
    assert not set(WRONG) & set(given.json)


def test_it_tells_roles_of_several_choices_once_each(place: Place) -> None:
    events = [[delta({"content": "x"}) | {"index": index} for index in (0, 1)] for _ in range(3)]
    ends = [delta({}, "eos") | {"index": index} for index in (1, 0)]
    answer = stream(place, *events, *ends, n=2)
    assert [choice.message.content for choice in check_stream(answer.events).choices] == ["xxx", "xxx"]


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (1, 2, 0)], ids=str)
def test_it_tells_choices_in_order_whichever_the_engine_begins_with(place: Place, order: tuple[int, ...]) -> None:
    choices = [delta({"role": "assistant", "content": f"text {index}"}) | {"index": index} for index in order]
    ends = [delta({}, "stop") | {"index": index} for index in order]
    wanted = [f"text {index}" for index in range(len(order))]
    final = check_stream(stream(place, *choices, *ends, n=len(order)).events)
    assert [choice.message.content for choice in final.choices] == wanted
