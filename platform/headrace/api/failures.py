"""Failures that upstreams tell with a 200: in place of an answer, beside its choices, or in one of them."""

import json
from typing import Any

import msgspec

from engines.errors import Failed, UpstreamError
from engines.refusals import error_event
from headrace.api.finish_reasons import failure, word_of

_FINE = frozenset({"", "0", "200", "none", "null", "ok", "success"})
_any = msgspec.json.Decoder(list[dict[str, Any]])


def told_beside(body: bytes) -> UpstreamError | None:
    """The error that an event or an answer tells outside its choices; None: it tells none."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return error_event(body) if isinstance(told, dict) and _is_error(told) else None


def _is_error(told: dict[str, Any]) -> bool:
    if told.get("object") == "error" or told.get("success") is False or _says(told.get("error")):
        return True
    if told.get("choices") or told.get("usage"):
        return False
    if _says(told.get("errors")) or _says(told.get("detail")):
        return True
    if str(told.get("status")).lower() in {"error", "failed"}:
        return True
    is_coded = str(told.get("code")).lower() not in _FINE or "error" in str(told.get("type")).lower()
    return is_coded and _says(told.get("message") or told.get("msg"))


def told_in_choices(choices: bytes) -> UpstreamError | None:
    """The error in one of these choices, which may claim to have ended well; None: there is none.

    Of the provider's own word for the end, which gateways pass on beside theirs, only one that is a failure says
    anything.
    """
    if b'"error"' not in choices and b'"native_finish_reason"' not in choices:
        return None
    try:
        found = _any.decode(choices)
    except (msgspec.DecodeError, RecursionError):
        return None
    for choice in found:
        for said in (choice, choice.get("message"), choice.get("delta")):
            if isinstance(said, dict) and _says(said.get("error")):
                return error_event(msgspec.json.encode({"error": said["error"]}))
        if isinstance(failed := failure(word_of(choice.get("native_finish_reason"))), Failed):
            return failed
    return None


def _says(value: Any) -> bool:
    """Whether it says anything: some have a place for an error in every answer, and leave it empty."""
    if isinstance(value, dict):
        return any(_says(each) for each in value.values())
    if isinstance(value, list):
        return any(_says(each) for each in value)
    return bool(value)
