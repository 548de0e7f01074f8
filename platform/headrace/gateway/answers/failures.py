"""Failures that upstreams tell with a 200: in place of an answer, beside its choices, or in one of them."""

import json
from typing import Any

import msgspec

from engines.errors import Failed, UpstreamError
from engines.refusals import error_event
from headrace.gateway.answers.finish_reasons import failure, word_of
from headrace.gateway.answers.raw_json import NULL
from headrace.gateway.answers.usage_locations import UsagePlaces

_FINE = frozenset({"", "0", "200", "none", "null", "ok", "success"})
_FAILED = frozenset({"error", "failed", "failure"})
# Words of others than the answer's own for why it ended: only one that is a failure says anything.
_NATIVE = ("native_finish_reason", "nativeFinishReason", "finish_details", "finishDetails")
_IN_CHOICES = (b'"error"', *(b'"%b"' % name.encode() for name in _NATIVE))
_any = msgspec.json.Decoder(list[dict[str, Any]])


class FailurePlaces(UsagePlaces):
    """The fields beside the choices that may tell a failure although there are choices."""

    error: msgspec.Raw = NULL
    errors: msgspec.Raw = NULL
    success: msgspec.Raw = NULL
    object: msgspec.Raw = NULL
    status: msgspec.Raw = NULL
    code: msgspec.Raw = NULL
    error_code: msgspec.Raw = NULL
    error_msg: msgspec.Raw = NULL
    error_message: msgspec.Raw = NULL
    base_resp: msgspec.Raw = NULL

    @property
    def may_fail(self) -> bool:
        """Whether one of them may say so: in one comparison where none is there, since it is asked of each event."""
        if (
            NULL is self.error is self.errors is self.success is self.status is self.code
            is self.error_code is self.error_msg is self.error_message is self.base_resp
        ):  # fmt: skip
            return bytes(self.object) == b'"error"'
        return True


def told_beside(body: bytes) -> UpstreamError | None:
    """The error that an event or an answer tells outside its choices; None: it tells none."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return error_event(body) if isinstance(told, dict) and _is_error(told) else None


def _is_error(told: dict[str, Any]) -> bool:
    if told.get("object") == "error" or told.get("success") is False:
        return True
    if any(_says(told.get(name)) for name in ("error", "errors", "error_msg", "error_message")):
        return True
    resp = told.get("base_resp")  # MiniMax's, in every answer
    numbers = (told.get("error_code"), resp.get("status_code") if isinstance(resp, dict) else None)
    if any(str(number).lower() not in _FINE for number in numbers):
        return True
    if str(told.get("status")).lower() in _FAILED:
        return True
    code, is_worded = str(told.get("code")).lower(), _says(told.get("message") or told.get("msg"))
    if told.get("choices") or told.get("usage"):
        return is_worded and code.isdecimal() and 400 <= int(code) < 600  # others count their successes otherwise
    return _says(told.get("detail")) or (is_worded and (code not in _FINE or "error" in str(told.get("type")).lower()))


def told_in_choices(choices: bytes) -> UpstreamError | None:
    """The error in one of these choices, which may claim to have ended well; None: there is none."""
    if not any(name in choices for name in _IN_CHOICES):
        return None
    try:
        found = _any.decode(choices)
    except (msgspec.DecodeError, RecursionError):
        return None
    for choice in found:
        for said in (choice, choice.get("message"), choice.get("delta")):
            if isinstance(said, dict) and _says(said.get("error")):
                return error_event(msgspec.json.encode({"error": said["error"]}))
        for name in _NATIVE:
            if isinstance(failed := failure(word_of(choice.get(name))), Failed):
                return failed
    return None


def _says(value: Any) -> bool:
    """Whether it says anything: some have a place for an error in every answer, and leave it empty."""
    if isinstance(value, dict):
        return any(_says(each) for each in value.values())
    if isinstance(value, list):
        return any(_says(each) for each in value)
    return bool(value)
