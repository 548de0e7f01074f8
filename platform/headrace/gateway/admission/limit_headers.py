"""The headers of an answer: where it went, and what is left of the caller's limits (the tightest scope)."""

from headrace.gateway.errors import Headers
from headrace.gateway.state.request_state import RequestState
from tenants.meters.holds import Level
from tenants.meters.meter import INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS

_NAMES = {
    b"requests": {REQUESTS},
    b"tokens": {INPUT_TOKENS, OUTPUT_TOKENS},
    b"input-tokens": {INPUT_TOKENS},
    b"output-tokens": {OUTPUT_TOKENS},
}


def answer_headers(request: RequestState) -> Headers:
    """x-headrace-* and x-ratelimit-*; a limit that no scope has gets no header."""
    headers: Headers = [
        (b"x-headrace-target", request.target.name.encode()),
        (b"x-headrace-fallback", b"%d" % request.event.fallback),
        (b"x-headrace-cache", request.event.cache.encode()),
        (b"x-headrace-queue-ms", b"%d" % request.event.queue_ms),
    ]
    return headers + limit_headers(request.levels)


def limit_headers(levels: list[Level]) -> Headers:
    """x-ratelimit-* of what was taken, or of how all stood when nothing was."""
    headers: Headers = []
    for name, measures in _NAMES.items():
        of_it = [level for level in levels if level.meter.measure in measures]
        if of_it:
            headers += _limit(name, min(of_it, key=lambda level: level.free))
    return headers


def _limit(name: bytes, level: Level) -> Headers:
    return [
        (b"x-ratelimit-limit-" + name, b"%d" % level.meter.limit),
        (b"x-ratelimit-remaining-" + name, b"%d" % level.free),
        (b"x-ratelimit-reset-" + name, b"%.3fs" % (level.reset_ms / 1000)),
    ]
