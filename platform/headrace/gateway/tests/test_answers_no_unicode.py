"""An engine that cuts its text inside a character loses that character, and nothing else of its answer."""

import base64
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

LOST = "\ufffd"
# What stands between two quotes of JSON, and the text that clients get of it.
PIECES = [(b"a\xe2\x82", "a" + LOST), (b"\xacb", LOST + "b"), (b"caf\xe9", "caf" + LOST), (rb"\ud83d", LOST)]
PLACES = ["content", "reasoning_content", "reasoning", "refusal"]


def events(*deltas: bytes) -> list[str]:
    bodies = [b'{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}' % delta for delta in deltas]
    bodies.append(b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    return [base64.b64encode(b"data: " + body + b"\n\n").decode() for body in (*bodies, b"[DONE]")]


def deltas(answer: Answer) -> list[dict[str, Any]]:
    return [choice["delta"] for event in answer.events for choice in event["choices"]]


@pytest.mark.parametrize("name", PLACES)
def test_a_stream_goes_on_after_half_a_character(place: Place, name: str) -> None:
    raw = events(*(b'{"%s":"%s"}' % (name.encode(), sent) for sent, _ in PIECES))
    answer = place.scripted(fields={"stream": True}, raw=raw)
    assert (answer.status, answer.is_done) == (200, True)
    assert [delta[name] for delta in deltas(answer) if name in delta] == [text for _, text in PIECES]
    assert (answer.record["status"], answer.record["finish_reason"]) == ("ok", "stop")


def test_a_call_s_arguments_go_on_after_half_a_character(place: Place) -> None:
    call = b'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"%s"}}]}'
    answer = place.scripted(fields={"stream": True}, raw=events(*(call % sent for sent, _ in PIECES)))
    assert answer.is_done
    calls = [call for delta in deltas(answer) for call in delta.get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in calls] == [text for _, text in PIECES]


def test_what_we_only_pass_on_is_repaired_as_well(place: Place) -> None:
    """Tokens of logprobs are cut inside characters more often than any other text."""
    top = b'{"token":"\\udc00","logprob":-1,"bytes":null}'
    token = b'{"token":"\xe2\x82","logprob":-0.10,"bytes":[226,130],"top_logprobs":[%s]}' % top
    logprobs = b'{"content":[%s],"refusal":null}' % token
    delta = b'"delta":{"role":"assistant","content":"x"}'
    choice = b'{"index":0,%s,"logprobs":%s,"finish_reason":"stop"}' % (delta, logprobs)
    body = b'data: {"choices":[%s]}\n\ndata: [DONE]\n\n' % choice
    answer = place.scripted(fields={"stream": True}, raw=[base64.b64encode(body).decode()])
    [told] = answer.events[0]["choices"][0]["logprobs"]["content"]
    assert (told["token"], told["top_logprobs"][0]["token"]) == (LOST, LOST)
    assert b'"logprob":-0.10,' in answer.raw  # byte for byte but for what was no text


def test_an_answer_assembled_of_a_stream_is_whole(place: Place) -> None:
    model = place.add_model(url=f"{place.upstream.url}/", engine="llamacpp")
    place.wait_known(model)
    answer = place.scripted(fields={"model": model}, raw=events(*(b'{"content":"%s"}' % sent for sent, _ in PIECES)))
    assert place.seen()["stream"]
    assert answer.text == "".join(text for _, text in PIECES)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(("sent", "text"), PIECES)
def test_a_whole_answer_comes_with_its_text_repaired(place: Place, name: str, sent: bytes, text: str) -> None:
    message = b'{"role":"assistant","content":null,"%s":"%s"}' % (name.encode(), sent)
    body = b'{"choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}' % message
    answer = place.scripted(raw=[base64.b64encode(body).decode()])
    assert answer.status == 200, answer.raw
    assert answer.json["choices"][0]["message"][name] == text
    assert answer.record["status"] == "ok"


def test_a_failure_told_in_bytes_that_are_no_text_is_told(place: Place) -> None:
    body = b'data: {"error":{"message":"caf\xe9 \\ud83d","code":400,"type":"BadRequestError"}}\n\n'
    answer = place.scripted(fields={"stream": True}, raw=[base64.b64encode(body).decode()])
    assert (answer.status, answer.error["code"]) == (400, "invalid_request")
