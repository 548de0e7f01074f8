"""One request inside a simulated replica."""

from dataclasses import dataclass
from typing import Literal

from headrace_dev.simulator.fleet.cache import Chain

Finish = Literal["", "stop", "length", "abort"]


@dataclass(slots=True, eq=False)
class Request:
    """`prompt` tokens in; the model will say `output` tokens (known to nobody before), `max_tokens` allowing.

    chain: the blocks of prompt and answer together, as far as they are full. Higher `priority` goes first. What follows
    `arrived` is the scheduler's: `cached` tokens of the prompt were found at its first start, `computed` tokens have
    KV, of which `locked` blocks are in the cache and `private` ones are its own.
    """

    rid: str
    chain: Chain
    prompt: int
    output: int
    max_tokens: int
    priority: int = 0
    arrived: float = 0.0

    cached: int | None = None
    computed: int = 0
    generated: int = 0
    locked: int = 0
    private: int = 0
    retracted: int = 0
    first_at: float | None = None
    ended_at: float | None = None
    finish: Finish = ""
    aborted: bool = False

    @property
    def input(self) -> int:
        """Tokens to compute before the next one can be said: a retracted request reads its own answer again."""
        return self.prompt + self.generated

    @property
    def allowed(self) -> int:
        """Output tokens it may still produce."""
        return self.max_tokens - self.generated
