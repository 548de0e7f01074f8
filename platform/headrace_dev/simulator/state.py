"""All that the scripted upstream holds: its options, its scripts, what runs, what it saw."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace_dev.simulator.prefix import PrefixCache
from headrace_dev.simulator.run import Run
from headrace_dev.simulator.script import Script
from headrace_dev.simulator.seen import Seen
from headrace_dev.simulator.writing import Message


@dataclass
class State:
    """`script` answers requests without one of their own, after the `queued` ones, each of which serves once."""

    model: str = "scripted"
    tokens: int = 100
    interval_ms: float = 0
    first_ms: float = 0
    context: int = 1_000_000
    script: Script = field(default_factory=Script)
    queued: deque[Script] = field(default_factory=deque)
    running: dict[str, Run] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    cache: PrefixCache = field(default_factory=PrefixCache)
    health: dict[str, Any] = field(default_factory=dict)  # {"status": 503, "delay_ms": 25000}
    loads: dict[str, Any] = field(default_factory=dict)  # fields of /v1/loads that are made up
    about: dict[str, Any] = field(default_factory=dict)  # what /model_info says beside the model's name

    def next_script(self) -> Script:
        return self.queued.popleft() if self.queued else self.script

    def completed(self, script: Script) -> Script:
        """The script with the server's options where it says nothing."""
        tokens, texts = script.tokens, script.texts
        if tokens is None:
            tokens = len(texts) if texts is not None else 0 if script.tool_calls else self.tokens
        return msgspec.structs.replace(
            script,
            tokens=tokens,
            interval_ms=self.interval_ms if script.interval_ms is None else script.interval_ms,
            first_ms=self.first_ms if script.first_ms is None else script.first_ms,
        )

    def headers(self, scope: Message) -> dict[str, str]:
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

    def reset(self) -> None:
        """Drop what runs and forget everything but the options."""
        for run in list(self.running.values()):
            run.end_by("reset")
        self.script = Script()
        self.queued.clear()
        self.cache.clear()
        self.health.clear()
        self.loads.clear()
        self.about.clear()
