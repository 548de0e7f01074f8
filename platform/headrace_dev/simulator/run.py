"""One chat request being served: what it asked for, how far it is, and what ends it early."""

import asyncio
import uuid
from typing import Any, Literal

from headrace_dev.simulator import prefix
from headrace_dev.simulator.script import Script
from headrace_dev.simulator.seen import Entry
from headrace_dev.simulator.usage import Usage

Ending = Literal["", "abort", "close", "reset"]

EVENT_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]


def whole_number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


class Run:
    """`pause` is the only place where a run waits; `end_by` makes it return at once, with `ending` set."""

    def __init__(self, body: dict[str, Any], texts: list[str], script: Script, entry: Entry, *, cached: int) -> None:
        options = body.get("stream_options") or {}
        self.script = script
        self.entry = entry
        self.stream = body.get("stream") is True
        self.model = str(body.get("model") or "")
        self.rid = entry.rid = str(body.get("rid") or uuid.uuid4().hex)
        self.n = max(1, whole_number(body.get("n"), 1))
        self.tools = script.tool_calls
        pieces = sum(piece is not None for call in self.tools for piece in call.arguments)
        asked = body.get("max_completion_tokens")
        wanted = (script.tokens or 0) + pieces
        most = whole_number(asked if asked is not None else body.get("max_tokens"), wanted)
        self.cut = most < wanted
        self.tokens = min(script.tokens or 0, most)
        self.tool_tokens = min(pieces, most - self.tokens)
        prompt = script.prompt_tokens if script.prompt_tokens is not None else prefix.count(texts)
        self.usage = Usage(
            script,
            include=options.get("include_usage") is True,
            continuous=options.get("continuous_usage_stats") is True,
            prompt=prompt,
            cached=script.cached_tokens if script.cached_tokens is not None else max(0, min(cached, prompt - 1)),
        )
        self.ending: Ending = ""
        self.gone = False
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.began = self._loop.time()
        self._wake: asyncio.Future[None] | None = None
        self._ping_at = self.began + script.ping_ms / 1000 if script.ping_ms else None

    @property
    def finish_reason(self) -> str | None:
        if self.script.finish_reason != "auto":
            return self.script.finish_reason
        return "length" if self.cut else "tool_calls" if self.tools else "stop"

    @property
    def first_at(self) -> float:
        return self.began + (self.script.first_ms or 0) / 1000

    def due(self, step: int) -> float:
        """When event `step` is to be sent, on the loop's clock."""
        return self.first_at + step * (self.script.interval_ms or 0) / 1000

    def now(self) -> float:
        return self._loop.time()

    # --- ended from outside
    def abort(self) -> None:
        """/abort_request names this run. As with SGLang, it does not reach the copies of n > 1."""
        if not self.script.ignore_abort and self.n == 1:
            self._loop.call_later(self.script.abort_lag_ms / 1000, self.end_by, "abort")

    def leave(self) -> None:
        """The client closed the connection."""
        self.gone = True
        lag = self.script.close_lag_ms
        if lag is None:
            lag = 0 if self.stream else 2000
        if not self.script.ignore_close:
            if lag:
                self._loop.call_later(lag / 1000, self.end_by, "close")
            else:
                self.end_by("close")

    def end_by(self, ending: Ending) -> None:
        self.ending = self.ending or ending
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # --- waiting
    async def pause(self, until: float | None) -> bytes | None:
        """Wait until that time (None: for ever) or an ending. Returns b"ping" early, as often as a comment is due."""
        has_waited = False
        while not self.ending:
            now = self._loop.time()
            if until is not None and now >= until:
                if not has_waited:  # late, or in no hurry to wait: the loop has to hear of a client that left
                    await asyncio.sleep(0)
                return None
            if self._ping_at is not None and now >= self._ping_at:
                self._ping_at = now + self.script.ping_ms / 1000
                return self.script.ping.encode() + b"\n\n"
            await self._sleep(min((t for t in (until, self._ping_at) if t is not None), default=None))
            has_waited = True
        return None

    async def _sleep(self, until: float | None) -> None:
        self._wake = self._loop.create_future()
        timer = self._loop.call_at(until, self._timer) if until is not None else None
        try:
            await self._wake
        finally:
            if timer is not None:
                timer.cancel()

    def _timer(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
