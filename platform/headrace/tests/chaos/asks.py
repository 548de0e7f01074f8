"""What is asked: scripts of upstreams that tell the truth or lie, break off or hang, and clients that stay or leave."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from headrace_dev.simulator import prefix

# How upstreams report usage, the honest way more often than each of the others.
_USAGES = (
    ["asked"] * 12
    + ["continuous", "final", "finish", "twice", "none", "null", "null_zero", "zero", "negative"]
    + ["cached_over_prompt", "string", "huge", "partial"]
)
_REFUSALS: tuple[dict[str, Any], ...] = (
    {"status": 500},
    {"status": 400, "body": {"message": "no"}},
    {"queue_full": True},
    {"html": True},
    {"no_answer": True},
    {"tokens": 0, "finish_reason": None, "usage": "none"},
)


@dataclass(frozen=True)
class Ask:
    """One request. leaves_after: events that the client reads before it leaves (0: none of them), None: it stays."""

    name: str
    stream: bool
    script: dict[str, Any]
    leaves_after: int | None = None
    leaves_in: float = 0
    resets: bool = False
    more: str = ""

    @property
    def content(self) -> str:
        return json.dumps({"script": self.script}) + f" {self.name} " + self.more

    @property
    def counted_prompt(self) -> int:
        """The prompt by the engine's own tokenizer."""
        return prefix.count([self.content])

    @property
    def is_refused(self) -> bool:
        """Whether the upstream gives no answer at all."""
        return any(all(self.script.get(name) == value for name, value in one.items()) for one in _REFUSALS)

    @property
    def is_liar(self) -> bool:
        """Whether the upstream's figures cannot be believed, so that somebody else has to count."""
        return self.script["usage"] in {"none", "null", "null_zero", "zero", "negative", "huge", "partial"}

    @property
    def breaks_after(self) -> int | None:
        """After how many tokens the upstream's answer breaks off."""
        for name in ("drop_after", "error_event_after", "stall_after"):
            if (found := self.script.get(name)) is not None:
                return int(found)
        return None


@dataclass
class Asks:
    """The requests of a seed, in order. `again` is the same request under a name of its own."""

    seed: int
    _rng: random.Random = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def next(self) -> Ask:
        rng = self._rng
        self._made += 1
        # A prompt has no more tokens than bytes and a template: a budget holds no more for it.
        tokens, prompt = rng.randint(1, 25), rng.randint(5, 2000)
        script: dict[str, Any] = {
            "tokens": tokens,
            "interval_ms": rng.choice([1, 3, 8, 15]),
            "usage": rng.choice(_USAGES),
            "prompt_tokens": prompt,
            "cached_tokens": rng.randrange(prompt),
        }
        if rng.random() < 0.03:
            script |= {"tokens": rng.randint(60, 120), "interval_ms": 25}  # it outlives a fault
        if rng.random() < 0.2:
            script |= self._breaking(script["tokens"])
        stream = rng.random() < 0.8
        leaves = rng.random() < 0.15
        return Ask(
            name=f"r{self._made}",
            stream=stream,
            script=script,
            leaves_after=rng.randint(0, tokens) if leaves else None,
            leaves_in=rng.uniform(0, 0.3) if leaves else 0,
            resets=rng.random() < 0.5,
            more="x" * rng.choice([0, 20, 200]),
        )

    def _breaking(self, tokens: int) -> dict[str, Any]:
        rng = self._rng
        after = rng.randint(0, tokens)
        return rng.choice(
            [
                {"drop_after": after, "drop": rng.choice(["reset", "close"])},
                {"error_event_after": after},
                {"stall_after": after} if rng.random() < 0.3 else {"drop_after": after},
                rng.choice(_REFUSALS),
            ]
        )


def again(ask: Ask, times: int) -> Ask:
    return Ask(**{**vars(ask), "name": f"{ask.name.partition('.')[0]}.{times}"})
