"""Which replica was sent which prompts: predictions of cached tokens, and what engines' reports correct.

Times are milliseconds of the wall clock, so that those of several processes compare.
"""

from collections.abc import Callable

import msgspec

from routing.prefix_index.blocks import BYTES_PER_TOKEN, Chain
from routing.prefix_index.replica_blocks import ReplicaBlocks

# What one entry takes: a dictionary's slot, a key, a tuple of two numbers (measured with tracemalloc).
BYTES_PER_ENTRY = 280
# A prompt sent so short a time ago may still be in prefill: that another does not find it proves nothing.
_UNSURE_MS = 10_000
# Below so many tokens a prediction that fails is noise: templates, page sizes, the last token.
_NOISE_TOKENS = 128


class Sent(msgspec.Struct, frozen=True):
    """What was believed when a prompt was sent: how many of its blocks were held, how many tokens that predicts, when
    the first and the last of those were used before, and the time of sending."""

    replica: str
    chain: Chain
    known: int
    predicted: int
    used_before: tuple[int, ...]
    at: int


class Change(msgspec.Struct, array_like=True, frozen=True):
    """One thing another process has to know: "use" and "drop" say blocks, "until" a time."""

    kind: str
    replica: str
    time: int = 0
    hashes: tuple[int, ...] = ()


class PrefixIndex:
    """One `ReplicaBlocks` a replica. `tell` hears of each change made here, for the other processes.

    tokens: the KV capacity of a replica that does not say its own. most: entries of all replicas together.
    """

    def __init__(self, *, tokens: int, most: int, tell: Callable[[Change], None] | None = None) -> None:
        self._default = tokens * BYTES_PER_TOKEN
        self._most = most
        self._tell = tell or (lambda change: None)
        self._replicas: dict[str, ReplicaBlocks] = {}
        self._starts: dict[str, int] = {}

    # --- asked on the request path -----------------------------------------------------------------------------------
    def overlap(self, replica: str, chain: Chain, prompt_tokens: int) -> int:
        """How many of the prompt's tokens the replica is believed to have, less by how often that failed."""
        held = self._replicas.get(replica)
        if held is None:
            return 0
        return round(held.trust * chain.tokens(held.match(chain.hashes), prompt_tokens))

    def sent(self, replica: str, chain: Chain, prompt_tokens: int, now: int) -> Sent:
        """The prompt goes to this replica now; keep the answer for `reported` or `failed`."""
        held = self._of(replica)
        known = held.match(chain.hashes)
        used = tuple(held.last_used(block) or 0 for block in chain.hashes[:known])
        held.use(chain.hashes, now)
        if chain.hashes:
            self._tell(Change("use", replica, now, chain.hashes))
        return Sent(replica, chain, known, chain.tokens(known, prompt_tokens), used, now)

    # --- told afterwards ---------------------------------------------------------------------------------------------
    def reported(self, sent: Sent, prompt_tokens: int, cached_tokens: int, now: int) -> int:
        """The engine says how many of the prompt's tokens it had in its cache; how many were predicted of them.

        Far fewer than predicted: the cache lost the blocks beyond, and so whatever was used no later than the first of
        them (both are least-recently-used). More: others warmed it. Either way it holds this prompt now.
        """
        predicted = sent.chain.tokens(sent.known, prompt_tokens)
        held = self._of(sent.replica)
        if predicted >= _NOISE_TOKENS:
            held.believe(min(1.0, cached_tokens / predicted))
        missing = sent.chain.blocks(cached_tokens, prompt_tokens)
        if cached_tokens < predicted // 2 and predicted - cached_tokens >= _NOISE_TOKENS and missing < sent.known:
            lost = sent.used_before[missing]
            if sent.at - lost >= _UNSURE_MS:
                held.forget_until(lost)
                self._tell(Change("until", sent.replica, lost))
        held.use(sent.chain.hashes, now)
        return predicted

    def failed(self, sent: Sent) -> None:
        """The prompt was never prefilled: what only it would have brought is not there."""
        held, new = self._of(sent.replica), sent.chain.hashes[sent.known :]
        # What another request used since is there on that one's account.
        gone = tuple(block for block in new if held.last_used(block) == sent.at)
        if gone:
            held.forget(gone)
            self._tell(Change("drop", sent.replica, sent.at, gone))

    def began(self, replica: str, start: int) -> None:
        """The replica's engine was last started at `start`, any number that is another for each start; 0: unknown. Its
        cache was empty then. May be repeated. Every process is told by the picture of the fleet, none by another."""
        if start and start != self._starts.get(replica):
            self._starts[replica] = start
            self._replicas.pop(replica, None)

    def heard(self, change: Change) -> None:
        """What another process told."""
        held = self._of(change.replica)
        match change.kind:
            case "use":
                held.use(change.hashes, change.time)
            case "drop":
                held.forget(block for block in change.hashes if held.last_used(block) == change.time)
            case "until":
                held.forget_until(change.time)

    # --- its size ----------------------------------------------------------------------------------------------------
    def resize(self, capacities: dict[str, int | None]) -> None:
        """Keep these replicas alone, each sized by its KV capacity in tokens (None: the default)."""
        for gone in self._replicas.keys() - capacities.keys():
            del self._replicas[gone]
        self._starts = {name: start for name, start in self._starts.items() if name in capacities}
        for name, held in self._replicas.items():
            tokens = capacities[name]
            capacity = self._default if tokens is None else tokens * BYTES_PER_TOKEN
            held.resize(capacity=capacity, most=self._most // len(self._replicas))

    @property
    def entries(self) -> int:
        return sum(len(held) for held in self._replicas.values())

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        return self.entries * BYTES_PER_ENTRY

    def trust(self, replica: str) -> float:
        held = self._replicas.get(replica)
        return 1.0 if held is None else held.trust

    def _of(self, replica: str) -> ReplicaBlocks:
        held = self._replicas.get(replica)
        if held is None:
            held = self._replicas[replica] = ReplicaBlocks(self._default, self._most)
            for other in self._replicas.values():
                other.resize(most=self._most // len(self._replicas))
        return held
