"""What an upstream's refusal means, by its status, its headers and its words; and an error inside a 200 stream."""

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

from engines.errors import AccountRefused, BadAnswer, Busy, Died, Failed, Rejected, UpstreamError
from engines.reasons import read_param, read_reason

# Words by which engines and providers say that the prompt does not fit, and that the account has no money.
_CONTEXT_WORDS = ("context length", "context size", "exceed_context_size", "context_length_exceeded", "maximum context")
_ACCOUNT_WORDS = (
    "credit balance",
    "insufficient_quota",
    "insufficient quota",
    "billing_hard_limit",
)
# Gemini says it of every limit by the minute, as OpenAI does of an empty account, with a code that tells.
_ACCOUNT_OR_LIMIT_WORDS = (*_ACCOUNT_WORDS, "plan and billing")
# What servers say whose engine has just died: vLLM of both versions, TGI, TensorRT-LLM.
_DEATH = re.compile(
    r"\bengine ?core\b.{0,40}(?:encountered an issue|died|dead)|\b(?:async)?enginedead"
    r"|\bengine (?:process |loop )?(?:is dead|died|has died)|\bbackground loop (?:has errored|is stopped)"
    r"|\bserver error: (?:transport error|error trying to connect)|\bexecutor (?:worker )?(?:died|has died)"
)
# Envoy's words for a connection that was lost once the request was on it.
_LOST_BEHIND_PROXY = re.compile(r"disconnect/reset before headers.{0,40}(?:connection[ _]termination|remote[ _]reset)")
# Where an error begins to repeat what somebody sent: no apostrophe, which has a letter before it.
_REPEATED = re.compile(r"(?<!\w)['\"`]|[\[{<]")
_STREAM = re.compile(r"\bstream(?!_|\.options)")
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
# The types of errors that tell what a status would, where there is none.
_BUSY_TYPES = frozenset({"rate_limit_error", "overloaded_error"})
_REJECTED_TYPES = frozenset({"invalid_request_error", "BadRequestError"})


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> UpstreamError:
    """What an answer that is no 200 means; `body` is the beginning of its own."""
    text = body.decode("utf-8", "replace")
    return _with_words(_refusal(status, headers, text), _detail(text))


def _with_words(error: UpstreamError, detail: Any) -> UpstreamError:
    error.reason, error.param = read_reason(detail), read_param(detail)
    return error


def _refusal(status: int, headers: Mapping[str, str], text: str) -> UpstreamError:
    # Some say it by a 500: taken for a failure, one client's long prompts would have every replica left alone.
    if status in {400, 404, 413, 422, 500} and any(word in text.lower() for word in _CONTEXT_WORDS):
        return Rejected("the prompt does not fit", kind="context_length", status=status)
    if status in {400, 404, 413, 422}:
        if _wants_money(_detail(text)):
            return AccountRefused("the upstream refuses the account", status=status)
        if status == 404:
            return Failed("the upstream does not serve this", status=status)
        kind = "stream" if _refuses_stream(_detail(text)) else "invalid"
        return Rejected("the upstream refuses the request", kind=kind, status=status)
    detail = _detail(text)
    if status in {401, 402, 403} or (status == 429 and _wants_money(detail, is_limit=True)):
        return AccountRefused("the upstream refuses the account", status=status)
    if _tells_death(detail, status):
        return Died("the engine died", status=status)
    if status in {429, 503}:
        wait = retry_after(headers)
        return Busy("no room", status=status, retry_after=_retry_delay(detail) if wait is None else wait)
    return Failed("the upstream failed", status=status)


def told_error(body: bytes) -> UpstreamError | None:
    """The error that a 200 tells instead of an answer, as gateways do once they have begun one; None: it tells none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_error = isinstance(answer, dict) and (answer.get("object") == "error" or bool(answer.get("error")))
    return error_event(body) if is_error else None


def error_event(data: bytes) -> UpstreamError:
    """What an error inside a 200 stream means: engines report a full queue, and every late failure, like this."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return BadAnswer("an event that is not JSON")
    detail = _unwrapped(event)
    return _with_words(_of_event(detail), detail)


def _of_event(detail: Any) -> UpstreamError:
    code = str(detail.get("code")) if isinstance(detail, dict) else ""
    kind = str(detail.get("type")) if isinstance(detail, dict) else ""
    text = str(detail).lower()
    # Not all have a number: OpenAI's codes are words or null, and then the type says as much.
    is_number = code.isdecimal()
    is_busy = code in {"429", "503"} or (not is_number and ("rate_limit" in code or kind in _BUSY_TYPES))
    if _tells_death(detail, 500):
        return Died("the engine died", status=200)
    if _wants_money(detail, is_limit=is_busy):
        return AccountRefused("the upstream refuses the account", status=200)
    if is_busy:
        return Busy("no room", status=200, retry_after=_retry_delay(detail))
    is_context = any(word in text for word in _CONTEXT_WORDS)
    if code == "400" or (not is_number and (is_context or kind in _REJECTED_TYPES)):
        return Rejected("the upstream refuses the request", kind="context_length" if is_context else "invalid")
    return Failed("the upstream failed", status=200)


def _unwrapped(event: Any) -> Any:
    """The error in an error's JSON: some say it without the wrapper, or in a list."""
    if isinstance(event, list) and len(event) == 1:
        event = event[0]
    return (event.get("error") or event) if isinstance(event, dict) else event


def _detail(body: str) -> Any:
    """The error that a body tells; a body that is no JSON is all of it."""
    try:
        return _unwrapped(json.loads(body))
    except (ValueError, RecursionError):
        return body


def _refuses_stream(detail: Any) -> bool:
    """Whether an error is about being asked for a stream, in its parameter or in its own words: some models are not
    streamed, or not for every account."""
    message = detail
    if isinstance(detail, dict):
        if detail.get("param"):
            return bool(detail["param"] == "stream")
        message = detail.get("message") or detail.get("detail")
    return isinstance(message, str) and _STREAM.search(_own_words(message)) is not None


def _tells_death(detail: Any, status: int) -> bool:
    """Whether an error says that its engine broke down just now. A 502 is a proxy's word for it, whatever it says."""
    if status == 502:
        return True
    message = (detail.get("message") or detail.get("detail")) if isinstance(detail, dict) else detail
    own = _own_words(message) if isinstance(message, str) else ""
    return (status in {424, 500, 503} and _DEATH.search(own) is not None) or (
        status == 503 and _LOST_BEHIND_PROXY.search(own) is not None
    )


def _own_words(message: str) -> str:
    return _REPEATED.split(message, maxsplit=1)[0].lower()


def _wants_money(detail: Any, *, is_limit: bool = False) -> bool:
    """Whether an error is about our account, in its code or type, or in its own words.

    An engine may repeat what a client sent: were that believed, any client could have every replica left alone.
    is_limit: its status is that of a limit, which passes; less of its words is about the account then.
    """
    code, message = "", detail
    if isinstance(detail, dict):
        code = f"{detail.get('code')} {detail.get('type')}".lower()
        message = detail.get("message") or detail.get("detail")
    own = _own_words(message) if isinstance(message, str) else ""
    words = _ACCOUNT_WORDS if is_limit else _ACCOUNT_OR_LIMIT_WORDS
    return any(word in code or word in own for word in words)


def _retry_delay(detail: Any) -> float | None:
    """Seconds until Google wants to be asked again, which its errors say themselves (google.rpc.RetryInfo): "22.5s"."""
    details = detail.get("details") if isinstance(detail, dict) else None
    for each in details if isinstance(details, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and (found := _SECONDS.fullmatch(delay)):
            return float(found[1])
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until an upstream wants to be asked again; None where it does not say, or nothing we understand.

    `retry-after-ms` (OpenAI's) is exacter than `retry-after`, which is seconds or a date (RFC 9110, 10.2.3).
    """
    exact, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if exact:
            return _bounded(float(exact) / 1000)
        return _bounded(float(value)) if value else None
    except ValueError:
        pass  # a date, or nonsense
    try:
        when = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return _bounded(when.timestamp() - time.time())


def _bounded(seconds: float) -> float | None:
    return max(0.0, seconds) if isfinite(seconds) else None
