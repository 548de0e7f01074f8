"""What a policy is given and what it answers. A policy is pure: the same question and dice give the same ranking.

    ranking = POLICIES["prefix_aware"].rank(ask, candidates, random.Random(7))

It reads no clock, no store and no state of its own, so that a simulation can ask it as the gateway does.
"""

import random
from collections.abc import Sequence
from typing import ClassVar, Protocol

import msgspec

# What a token still to be read weighs beside the room it takes: while a prompt is read nobody decodes, and who comes
# waits. Not critical: in `bench routing --virtual` goodput is the same from 2 to 4; with 2, a third as many first
# tokens are late as with 0, and queues stay over twice the mean half as long.
UNREAD_WEIGHT = 2


class Ask(msgspec.Struct, frozen=True):
    """The request to place. Sizes are tokens.

    prompt: the whole prompt. turn: a number that grows by one a request; only round_robin looks at it. mark: a number
    that equal prompts share (the hash of their last block), so that ties between them fall alike in every process.
    """

    prompt: int
    turn: int = 0
    mark: int = 0


class Candidate(msgspec.Struct, frozen=True):
    """One replica as the policies see it. None means unknown, which weighs as the mean of the others, never as idle.

    overlap: tokens of this prompt believed to be in its cache. load: tokens it holds for running and waiting requests
    (prompts to prefill and outputs to decode); found: what those had of their prompts in its cache, which takes no room
    again but is read at each step; unread: what of their prompts it has still to read. capacity: the most it should
    hold. need: what this request would add. weight: its share of a full replica's work, below 1 while it starts slowly.
    kv_used: share of its KV cache in use.
    """

    name: str
    overlap: int = 0
    load: int | None = None
    found: int = 0
    unread: int = 0
    capacity: int | None = None
    need: int = 0
    kv_used: float | None = None
    running: int | None = None
    waiting: int | None = None
    weight: float = 1.0
    is_usable: bool = True

    @property
    def work(self) -> int | None:
        """What it is slow by: the tokens its requests attend to, and again those still to be read. None: unknown."""
        if self.load is None:
            return None
        return max(0, self.load) + max(0, self.found) + UNREAD_WEIGHT * max(0, self.unread)

    @property
    def has_room(self) -> bool:
        """Whether this request fits beside what it holds; an idle replica takes one of any size."""
        return self.capacity is None or not self.load or self.load + self.need <= self.capacity


class Ranked(msgspec.Struct, frozen=True):
    """One replica's place, best first. `score` is only comparable within a ranking.

    credit, relative and pressure are the parts of prefix_aware's score; is_over: it is behind all that are not, since
    it holds more than its share or has no room; is_explored: it leads by lot.
    """

    name: str
    score: float
    credit: float = 0.0
    relative: float = 0.0
    pressure: float = 0.0
    is_over: bool = False
    is_explored: bool = False


class Policy(Protocol):
    """One way to rank replicas."""

    name: ClassVar[str]

    def rank(self, ask: Ask, candidates: Sequence[Candidate], dice: random.Random) -> list[Ranked]:
        """The usable candidates, best first. Those that cannot be used are neither ranked nor counted in any mean."""
        ...


def mean_or(values: Sequence[float | None], otherwise: float) -> float:
    """The mean of the known values."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else otherwise


def sizes(candidates: Sequence[Candidate]) -> list[float]:
    """How much of the target's work each should carry, around 1: by capacity where all are known, and slow start."""
    capacities = [candidate.capacity for candidate in candidates]
    mean = mean_or(capacities, 0)
    if mean <= 0 or None in capacities:
        return [max(candidate.weight, 0.01) for candidate in candidates]
    return [max(c.weight, 0.01) * max((c.capacity or 0) / mean, 0.01) for c in candidates]


def densities(candidates: Sequence[Candidate]) -> list[float]:
    """The work of each over its size; an unknown one is the mean of the known."""
    shares = sizes(candidates)
    known = [None if c.work is None else c.work / share for c, share in zip(candidates, shares, strict=True)]
    mean = mean_or(known, 0.0)
    return [mean if density is None else density for density in known]
