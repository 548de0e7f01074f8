"""The one error table: every refusal and failure of the API, its status, and OpenAI's envelope.

ApiError(code)          one class; the code says which row of the table it is
  invalid_api_key 401 · budget_exhausted 402 · model_not_found, not_found 404 · method_not_allowed 405
  invalid_request, unsupported_parameter, request_too_large, context_length_exceeded, no_price, prompt_quarantined 400
  request_timeout 408 · body_too_large 413 · rate_limit_exceeded, budget_held 429
  internal_error 500 · upstream_error 502 · no_capacity, redis_unavailable, budget_rebuilding, starting 503
  upstream_timeout 504 · upstream_disconnected, lease_lost: in a stream only
"""

from math import ceil

import msgspec

Headers = list[tuple[bytes, bytes]]

# code -> (HTTP status, OpenAI's error type)
TABLE: dict[str, tuple[int, str]] = {
    "invalid_request": (400, "invalid_request_error"),
    "unsupported_parameter": (400, "invalid_request_error"),
    "request_too_large": (400, "invalid_request_error"),
    "context_length_exceeded": (400, "invalid_request_error"),
    "no_price": (400, "invalid_request_error"),
    "prompt_quarantined": (400, "invalid_request_error"),
    "invalid_api_key": (401, "authentication_error"),
    "budget_exhausted": (402, "insufficient_quota"),
    "model_not_found": (404, "invalid_request_error"),
    "not_found": (404, "invalid_request_error"),
    "method_not_allowed": (405, "invalid_request_error"),
    "request_timeout": (408, "invalid_request_error"),
    "body_too_large": (413, "invalid_request_error"),
    "rate_limit_exceeded": (429, "rate_limit_error"),
    "budget_held": (429, "rate_limit_error"),
    "internal_error": (500, "server_error"),
    "upstream_error": (502, "server_error"),
    "upstream_disconnected": (502, "server_error"),
    "lease_lost": (503, "server_error"),
    "no_capacity": (503, "server_error"),
    "redis_unavailable": (503, "server_error"),
    "budget_rebuilding": (503, "server_error"),
    "starting": (503, "server_error"),
    "upstream_timeout": (504, "server_error"),
}


class _Body(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str


class _Envelope(msgspec.Struct):
    error: _Body


class ApiError(Exception):
    """A row of the table with its message.

    retry_after: seconds until the same request may succeed. allow: the methods a path takes, of a 405. more_headers:
    those of the limits that refused it, told with retry_after. was_billed: whether tokens were, which SDKs that try
    again by themselves would have billed once more for each try.
    """

    was_billed = False

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
        allow: str | None = None,
        more_headers: Headers | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.param, self.retry_after, self.allow = code, message, param, retry_after, allow
        self.more_headers = more_headers or []
        self.status, self.type = TABLE[code]

    def as_json(self) -> bytes:
        """OpenAI's error envelope: the body of an answer, or the data of an event inside a stream."""
        return msgspec.json.encode(_Envelope(_Body(self.message, self.type, self.param, self.code)))

    def headers(self) -> Headers:
        """`allow`; `x-should-retry`, which OpenAI's SDKs obey; `retry-after` in whole seconds, rounded up so that
        waiting that long is enough, and in ms."""
        if self.allow is not None:
            return [(b"allow", self.allow.encode())]
        if self.was_billed:
            return [(b"x-should-retry", b"false")]
        if self.retry_after is None:
            return []
        # To the nearest microsecond first: 1.001 s are 1000.9999999999999 ms.
        milliseconds = max(1, ceil(round(self.retry_after * 1000, 3)))
        seconds = -(-milliseconds // 1000)
        return [
            (b"retry-after", b"%d" % seconds),
            (b"retry-after-ms", b"%d" % milliseconds),
            *self.more_headers,
        ]


def lease_lost() -> ApiError:
    """The process stood still, or was cut off from Redis, past the lease of the request: a reaper has settled it."""
    return ApiError("lease_lost", "The gateway lost its hold on this request.")


def no_media(kind: str) -> ApiError:
    """What the client is told whose request has an image, audio or a video that the model does not take."""
    return ApiError(
        "invalid_request", f"This model takes no {kind if kind == 'audio' else f'{kind}s'}.", param="messages"
    )
