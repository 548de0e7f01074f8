"""What can go wrong with an upstream. Messages are ours: an upstream's own text may hold paths, addresses and keys.

UpstreamError
├── Unreachable      no connection (refused, DNS, TLS), or it broke before an answer
├── Stale            a kept-alive connection turned out closed: nothing was processed, safe to send again
├── TimedOut         a deadline of the route passed (`which`)
├── Disconnected     the answer broke off
│   └── Incomplete   it ended in order, but without a finish_reason; none is invented
├── BadAnswer        an answer that is not one (HTML, no choices, not JSON, too large)
├── Busy             429/503: no room there now (`retry_after` seconds, if it said)
├── Failed           any other failure of the upstream's own (5xx)
│   ├── Died         the engine broke down, as it says itself with its last answer, or a proxy in front of it
│   └── AccountRefused  credentials or credit: no later request does better until an operator acts
└── Rejected         400: the request itself is at fault (`kind`: "context_length", "media", "stream" or "invalid")
"""


class UpstreamError(Exception):
    """Base of all; `status` is what the upstream answered, if it did.

    reason: the upstream's own words, as they came; they may hold anything. told: as much of them as is fit to be told
    (engines/reasons.py). param: the field they name.
    """

    def __init__(self, message: str = "", *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = ""
        self.told: str | None = None
        self.param: str | None = None


class Unreachable(UpstreamError):
    pass


class Stale(Unreachable):
    pass


class TimedOut(UpstreamError):
    def __init__(self, which: str) -> None:
        super().__init__(which)
        self.which = which


class Disconnected(UpstreamError):
    pass


class Incomplete(Disconnected):
    pass


class BadAnswer(UpstreamError):
    pass


class Busy(UpstreamError):
    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class Failed(UpstreamError):
    pass


class Died(Failed):
    pass


class AccountRefused(Failed):
    pass


class Rejected(UpstreamError):
    def __init__(self, message: str, *, kind: str = "invalid", status: int = 400) -> None:
        super().__init__(message, status=status)
        self.kind = kind
