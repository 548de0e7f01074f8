"""Fields that only we add to a request, and upstreams that refuse them: a provider need not know them to be usable.

What one refuses is left out of the same request at once, and of all later ones to that upstream and model for an hour:
it may be another by then. Nothing is learned unless the upstream then answered: a client cannot talk us into it.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from engines.errors import AccountRefused, Busy, Failed, Rejected, UpstreamError

REMEMBERED_SECONDS = 3600.0
# The same bound by two names; one of them is always sent.
_BOUNDS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_PARTS = {"continuous_usage_stats": "stream_options", "include_usage": "stream_options"}
_PLAIN = ("stream_options", "timings_per_token", "priority", "request_id")
ADDITIONS = frozenset({*_BOUNDS, *_PLAIN, "continuous_usage_stats"})
_UNWANTED = re.compile(
    r"un(?:supported|recogni[sz]ed|known|expected)"
    r"|not (?:supported|permitted|allowed|recogni[sz]ed|accepted|known|valid)"
    r"|(?:does not|doesn't|isn't|cannot) (?:support|allow|accept|recogni[sz]e|permit)"
    r"|extra|additional|forbidden|invalid|only (?:allowed|supported)|must not|no such",
    re.IGNORECASE,
)
# What says no more than that something is wrong.
_WORDLESS = re.compile(
    r"\W*(?:bad request|invalid request|unprocessable(?: entity| content)?|validation error|http \d+|\d+|error)?\W*",
    re.IGNORECASE,
)
_MOST = 4096


def refused_additions(error: UpstreamError, body: Mapping[str, Any], *, may_guess: bool = True) -> frozenset[str]:
    """Those of our fields in `body` that the upstream refuses, by its words.

    may_guess: whether it may be stream_options where the request is refused without a word.
    """
    if isinstance(error, Busy | AccountRefused) or not isinstance(error, Rejected | Failed):
        return frozenset()
    if getattr(error, "kind", "invalid") != "invalid":
        return frozenset()
    sent = {name for name in ADDITIONS if name in body}
    if "continuous_usage_stats" in body.get("stream_options", {}):
        sent.add("continuous_usage_stats")
    if isinstance(error, Rejected) and _WORDLESS.fullmatch(error.reason) and error.param is None:
        return frozenset(sent & {"stream_options"}) if may_guess else frozenset()
    named = {name for name in (*sent, *_PARTS) if error.param == name or _names(error.reason, name)}
    if not named or not (error.param in named or _UNWANTED.search(error.reason)):
        return frozenset()
    if "continuous_usage_stats" in named & sent:
        return frozenset({"continuous_usage_stats"})
    found = {_PARTS.get(name, name) for name in named} & sent
    if found >= {*_BOUNDS} or (len(found & {*_BOUNDS}) == 1 and _is_other_bound(found, error)):
        found -= {*_BOUNDS}
    return frozenset(found)


def leave_out(body: dict[str, Any], names: frozenset[str]) -> None:
    """Take these of our fields out of `body`; a bound on tokens goes by its other name."""
    for name in names:
        if name in _BOUNDS:
            if name in body and _BOUNDS[name] not in names:
                body[_BOUNDS[name]] = body.pop(name)
        elif name == "continuous_usage_stats":
            if "stream_options" in body:
                body["stream_options"] = {k: v for k, v in body["stream_options"].items() if k != name}
        else:
            body.pop(name, None)


class Unwanted:
    """What each upstream refuses of ours, by its name and model."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, dict[str, float]] = {}
        self._accepting: set[str] = set()

    def of(self, upstream: str) -> frozenset[str]:
        known = self._until.get(upstream) if self._until else None
        if not known:
            return frozenset()
        now = self._clock()
        return frozenset(name for name, until in known.items() if until > now)

    def accepts(self, upstream: str) -> bool:
        """Whether `upstream` has answered a stream with all of our fields."""
        return upstream in self._accepting

    def note_accepted(self, upstream: str) -> None:
        """`upstream` answered a stream that had all of our fields."""
        if len(self._accepting) < _MOST:
            self._accepting.add(upstream)

    def learn(self, upstream: str, names: frozenset[str]) -> None:
        """`upstream` answered once these were left out."""
        if len(self._until) < _MOST or upstream in self._until:
            until = self._clock() + REMEMBERED_SECONDS
            self._until.setdefault(upstream, {}).update(dict.fromkeys(names, until))


def _names(reason: str, name: str) -> bool:
    return re.search(rf"(?<!\w){name}(?!\w)", reason) is not None


def _is_other_bound(found: set[str], error: UpstreamError) -> bool:
    """Whether a message names the bound that was sent as the one to use, or as too large, and does not refuse it."""
    [bound] = found & {*_BOUNDS}
    text = error.reason.lower()
    return not re.search(
        rf"(?:un(?:supported|recogni[sz]ed|known|expected)|extra|additional)[^.]*{bound}"
        rf"|{bound}[^.]*(?:(?:is|are) not|n't|not be|not support|unsupported|unknown)"
        rf"|{bound}[^.]*(?:unrecogni|unexpected|extra|instead)",
        text,
    )
