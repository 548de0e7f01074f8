"""Which of our own fields an upstream refuses, by what it says."""

import json
from typing import Any

import pytest

from engines.additions import REMEMBERED_SECONDS, Unwanted, leave_out, refused_additions
from engines.refusals import error_event, refusal

BODY: dict[str, Any] = {"model": "m", "messages": [], "stream": True, "max_completion_tokens": 5, "temperature": 1}
STREAMED = BODY | {"stream_options": {"include_usage": True}}
CONTINUOUS = BODY | {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}

REFUSALS: list[tuple[int, Any, dict[str, Any], set[str]]] = [
    (
        400,
        {"error": {"message": "Unrecognized request argument supplied: stream_options"}},
        STREAMED,
        {"stream_options"},
    ),
    (400, {"error": {"message": "Nope", "param": "stream_options"}}, STREAMED, {"stream_options"}),
    (
        422,
        {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted", "type": "x"}]},
        STREAMED,
        {"stream_options"},
    ),
    (
        422,
        {
            "detail": [
                {"loc": ["body", "stream_options", "continuous_usage_stats"], "msg": "Extra inputs not permitted"}
            ]
        },
        CONTINUOUS,
        {"continuous_usage_stats"},
    ),
    (400, {"message": "unknown field: include_usage"}, STREAMED, {"stream_options"}),
    (500, {"error": "create() got an unexpected keyword argument 'stream_options'"}, STREAMED, {"stream_options"}),
    (501, {"error": {"message": "stream_options is not supported"}}, STREAMED, {"stream_options"}),
    (400, "", STREAMED, {"stream_options"}),
    (400, {"error": {"message": "Bad Request"}}, STREAMED, {"stream_options"}),
    (422, {"detail": "Unprocessable Entity"}, STREAMED, {"stream_options"}),
    (
        400,
        {"error": {"message": "Unsupported parameter: 'max_completion_tokens' is not supported with this model."}},
        BODY,
        {"max_completion_tokens"},
    ),
    (
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'max_completion_tokens' is not supported. Use 'max_tokens' instead.",
                "param": "max_completion_tokens",
            }
        },
        BODY,
        {"max_completion_tokens"},
    ),
    (422, {"detail": [{"loc": ["max_completion_tokens"], "msg": "Extra inputs"}]}, BODY, {"max_completion_tokens"}),
    # No refusals of ours.
    (400, {"error": {"message": "max_completion_tokens is too large: 5. At most 3 are supported."}}, BODY, set()),
    (400, {"error": {"message": "temperature is not supported", "param": "temperature"}}, STREAMED, set()),
    (400, {"error": {"message": "Invalid image."}}, STREAMED, set()),
    (400, {"error": {"message": "stream_options is not supported"}}, BODY, set()),
    (400, "", BODY, set()),
    (500, {"error": "it broke"}, STREAMED, set()),
    (500, "", STREAMED, set()),
    (429, {"error": {"message": "stream_options is not supported"}}, STREAMED, set()),
    (401, {"error": {"message": "stream_options is not supported"}}, STREAMED, set()),
]


@pytest.mark.parametrize(("status", "answer", "body", "refused"), REFUSALS)
def test_refused_additions_are_known_by_its_words(
    status: int, answer: Any, body: dict[str, Any], refused: set[str]
) -> None:
    raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    assert refused_additions(refusal(status, {}, raw), body) == refused


def test_a_200_that_tells_the_error_is_read_alike() -> None:
    event = b'{"error":{"code":400,"message":"stream_options is not supported"}}'
    assert refused_additions(error_event(event), STREAMED) == {"stream_options"}


def test_leaving_out_keeps_the_bound_by_its_other_name_and_the_rest() -> None:
    body = CONTINUOUS.copy()
    leave_out(body, frozenset({"continuous_usage_stats", "max_completion_tokens"}))
    assert body["stream_options"] == {"include_usage": True}
    assert (body["max_tokens"], "max_completion_tokens" in body) == (5, False)
    leave_out(body, frozenset({"stream_options", "max_tokens", "max_completion_tokens"}))
    assert (body["max_tokens"], "stream_options" in body) == (5, False)
    assert CONTINUOUS["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_what_was_learned_is_asked_again_after_an_hour() -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    unwanted = Unwanted(clock=(clock := Clock()))
    unwanted.learn("a m", frozenset({"stream_options"}))
    assert (unwanted.of("a m"), unwanted.of("a n")) == (frozenset({"stream_options"}), frozenset())
    clock.now += REMEMBERED_SECONDS + 1
    assert unwanted.of("a m") == frozenset()
