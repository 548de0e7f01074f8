"""Failures that are told with a 200, streamed and whole: never an answer, never billed, and asked again elsewhere."""

import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place

ERROR = {"message": "Provider returned error", "code": 502}
MESSAGE = {"role": "assistant", "content": "half an ans"}
CHOICE: dict[str, Any] = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 30, "completion_tokens": 4}
EMPTY = CHOICE | {"message": {"role": "assistant", "content": ""}}

BESIDE: list[dict[str, Any]] = [
    {"errors": [{"message": "no"}]},
    {"status": "failed"},
    {"code": 500, "message": "no"},
    {"code": "502", "msg": "no"},
    {"error_code": 336000, "error_msg": "no"},
    {"error_message": "no"},
    {"base_resp": {"status_code": 1013, "status_msg": "no"}},
]
WHOLE: list[dict[str, Any]] = [
    {"choices": [CHOICE], "error": ERROR},
    {"choices": [CHOICE], "error": "it broke"},
    {"choices": [CHOICE | {"error": ERROR}]},
    {"choices": [CHOICE | {"message": MESSAGE | {"error": ERROR}}]},
    {"choices": [EMPTY | {"native_finish_reason": "error"}]},
    {"choices": [CHOICE | {"finish_reason": "error"}]},
    {"choices": [EMPTY | {"nativeFinishReason": "MALFORMED_FUNCTION_CALL"}]},
    {"choices": [EMPTY | {"finish_details": {"type": "error"}}]},
    {"choices": [CHOICE], "success": False},
    *[{"choices": [CHOICE]} | told for told in BESIDE],
    {"choices": [], "code": 500, "message": "no"},
    {"object": "error", "message": "no", "code": 500},
    {"detail": "Internal Server Error"},
    {"message": "Model not loaded", "code": "model_error"},
    {"success": False, "message": "no"},
    {"status": "error", "message": "no"},
]
STREAMED: list[dict[str, Any]] = [
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "error": ERROR}]},
    {"choices": [{"index": 0, "delta": {"error": ERROR}, "finish_reason": "stop"}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "error"}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "error": ERROR},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "finish_details": {"type": "error"}}]},
    *[{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]} | told for told in BESIDE],
    *[body for body in WHOLE if not body.get("choices")],
]


@pytest.mark.parametrize("body", WHOLE, ids=lambda body: json.dumps(body)[:70])
def test_whole_answer_that_tells_a_failure_is_one(place: Place, body: dict[str, Any]) -> None:
    answer = place.scripted(status=200, body=body | {"usage": USAGE})
    assert answer.status in {502, 503}, answer.raw
    assert (answer.record["status"], answer.record["output_tokens"]) == ("error", 0)


@pytest.mark.parametrize("event", STREAMED, ids=lambda event: json.dumps(event)[:70])
def test_stream_that_tells_a_failure_is_one(place: Place, event: dict[str, Any]) -> None:
    early = place.events_from_upstream([event], stream=True)
    assert early.status in {502, 503}, early.raw
    assert (early.record["status"], early.record["output_tokens"]) == ("error", 0)
    delta = {"role": "assistant", "content": "half"}
    begun = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    late = place.events_from_upstream([begun, event], stream=True)
    assert (late.status, late.is_done) == (200, False), late.raw
    assert late.error["code"] in {"upstream_error", "no_capacity"}
    assert late.record["status"] == "error"


@pytest.mark.parametrize("nothing", [None, "", False, {}, [], {"message": "", "code": None}], ids=json.dumps)
def test_place_for_an_error_that_is_empty_is_none(place: Place, nothing: Any) -> None:
    fine = {"code": 0, "msg": "ok", "status": "ok", "errors": [], "base_resp": {"status_code": 0, "status_msg": ""}}
    body = {"choices": [CHOICE | {"error": nothing, "native_finish_reason": "stop"}], "error": nothing, **fine}
    assert place.scripted(status=200, body=body).status == 200
    choice = {"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": "stop", "error": nothing}
    assert place.events_from_upstream([{"choices": [choice], "error": nothing, **fine}], stream=True).is_done
