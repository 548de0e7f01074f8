"""Which replicas a request may go to, best first: each target in order, its replicas ranked by the route's policy."""

import random
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from engines.modalities import lacking
from routing.attention_load import AttentionLoad, SharedAttentionLoad
from routing.catalog import Replica, Route, Target
from routing.conditions import Facts
from routing.matching import Match, drawn_by, match
from routing.policies import POLICIES, Ask, Candidate, Policy, Ranked
from routing.prefix_index import Chain, PrefixIndex


class PlacementRequest(msgspec.Struct, frozen=True):
    """The request to place. prompt, output: tokens, estimated. chain: the prompt's blocks, in its cache scope.
    facts: what the conditions of targets look at. conversation: what its draws follow; b"": chance."""

    prompt: int
    output: int = 0
    chain: Chain = Chain((), 0)
    facts: Facts = Facts()
    conversation: bytes = b""

    def need(self, overlap: int) -> int:
        """What it adds to a replica that has `overlap` of it: tokens to prefill and to decode. What is cached is there
        already, whoever else reads it."""
        return max(0, self.prompt - overlap) + self.output


class Reading(msgspec.Struct, frozen=True):
    """What is known of one replica's engine. None: unknown, or too old to go by.

    is_last_resort: it is not usable, having failed before, but may be tried where nothing else of a route is.
    weight: below 1 while it starts slowly. kv_tokens: the size of its KV cache. kv_used: the share of it in use.
    start: a number that is another after each start of the engine; 0: unknown. lacks: the media that its model is known
    not to take.
    """

    is_usable: bool = True
    is_last_resort: bool = False
    state: str = "unknown"
    weight: float = 1.0
    kv_tokens: int | None = None
    kv_used: float | None = None
    running: int | None = None
    waiting: int | None = None
    start: int = 0
    lacks: tuple[str, ...] = ()


class Picture(Protocol):
    """Where readings come from. One that never said anything of a replica answers the default reading."""

    def reading(self, replica: str) -> Reading: ...


class Unwatched:
    """The picture of nobody who looks: every replica may be used."""

    def reading(self, replica: str) -> Reading:
        return Reading()


class Held(Protocol):
    """What is known of the tokens that replicas hold."""

    def tokens(self, replica: str) -> int: ...


class Choice(msgspec.Struct, frozen=True):
    """One replica a request may go to, as it was seen and ranked."""

    target: Target
    replica: Replica
    candidate: Candidate
    ranked: Ranked
    want: PlacementRequest

    @property
    def need(self) -> int:
        return self.candidate.need

    @property
    def work(self) -> AttentionLoad:
        """What it would have the replica do."""
        found = min(max(0, self.candidate.overlap), self.want.prompt)
        return AttentionLoad(found, self.want.prompt - found)


class Selection:
    """Ranks by what the prefix index predicts, what replicas hold and what their engines say.

    work: what their requests have them do; None: not counted.
    room_factor: how many tokens a replica may hold, as a multiple of its KV cache: outputs mostly end before their
    worst case, and a few waiting requests keep the batch full.
    """

    def __init__(
        self,
        index: PrefixIndex,
        held: Held,
        picture: Picture | None = None,
        *,
        work: SharedAttentionLoad | None = None,
        room_factor: float = 1.25,
        dice: random.Random | None = None,
        policies: Mapping[str, Policy] = POLICIES,
    ) -> None:
        self._index, self._held, self._picture = index, held, picture or Unwatched()
        self._work = work or SharedAttentionLoad()
        self._room_factor = room_factor
        self._dice = dice or random.Random()
        self._policies = policies
        self._turn = 0

    def choices(self, route: Route, want: PlacementRequest, *, besides: frozenset[str] = frozenset()) -> list[Choice]:
        """All usable replicas of the targets that take such a request, target by target. `besides`: those left out, by
        their keys.

        Where none is, those of last resort: a request that may fail is better than one that surely does.
        """
        return self.choices_of(self.match(route, want).targets, route, want, besides=besides)

    def match(self, route: Route, want: PlacementRequest) -> Match:
        """The route's targets for this request, and those that get a copy."""
        draw = drawn_by(want.conversation) if want.conversation else lambda name: self._dice.random()
        return match(route, want.facts, draw)

    def choices_of(
        self,
        targets: list[Target],
        route: Route,
        want: PlacementRequest,
        *,
        besides: frozenset[str] = frozenset(),
        unless_alone: frozenset[str] = frozenset(),
    ) -> list[Choice]:
        """As `choices`, of these targets. `unless_alone`: those left out as well, by their keys, while others are."""
        self._turn += 1
        for spared in (besides | unless_alone, besides) if unless_alone else (besides,):
            if found := [c for target in targets for c in self.of_target(route, target, want, besides=spared)]:
                return found
        return [c for target in targets for c in self._last_resort(route, target, want, besides)]

    def _last_resort(
        self, route: Route, target: Target, want: PlacementRequest, besides: frozenset[str]
    ) -> list[Choice]:
        hopeless = {r.key for r in target.replicas if not self._picture.reading(r.name).is_last_resort}
        spared = besides | hopeless
        return self.of_target(route, target, want, besides=spared, whatever=True)

    def of_target(
        self,
        route: Route,
        target: Target,
        want: PlacementRequest,
        *,
        besides: frozenset[str] = frozenset(),
        whatever: bool = False,
    ) -> list[Choice]:
        """The usable replicas of one target, best first; `whatever`: those that are not usable too."""
        media = want.facts.modalities
        replicas = {
            replica.name: replica
            for replica in target.replicas
            if replica.key not in besides and not self.lacked(target, replica, media)
        }
        seen = {candidate.name: candidate for candidate in self.candidates(replicas.values(), want)}
        if whatever:
            seen = {name: msgspec.structs.replace(each, is_usable=True) for name, each in seen.items()}
        ask = Ask(want.prompt, self._turn, want.chain.mark)
        ranking = self._policies[route.policy].rank(ask, list(seen.values()), self._dice)
        return [Choice(target, replicas[ranked.name], seen[ranked.name], ranked, want) for ranked in ranking]

    def lacked(self, target: Target, replica: Replica, modalities: frozenset[str]) -> frozenset[str]:
        """Those of `modalities` that the replica's model is known not to take."""
        if len(modalities) < 2:  # text alone, which every model takes
            return frozenset()
        return modalities & (lacking(target.modalities) or frozenset(self._picture.reading(replica.name).lacks))

    def lacked_by_all(self, target: Target, modalities: frozenset[str]) -> frozenset[str]:
        """Those of `modalities` that a replica of the target does not take, where none takes them all."""
        found = [self.lacked(target, replica, modalities) for replica in target.replicas]
        return found[0] if found and all(found) else frozenset()

    def follow(self, replicas: Iterable[str]) -> None:
        """Fit the prefix index to the replicas there are, the size of their caches, and those started anew."""
        readings = {name: self._picture.reading(name) for name in replicas}
        self._index.resize({name: reading.kv_tokens for name, reading in readings.items()})
        for name, reading in readings.items():
            self._index.began(name, reading.start)

    def standing(self, replica: str) -> tuple[bool, bool, int | None]:
        """What decides whether a request may go there at all: usable, of last resort, how much it holds."""
        reading = self._picture.reading(replica)
        return reading.is_usable, reading.is_last_resort, reading.kv_tokens

    def state(self, replica: str) -> str:
        """The state of its engine, as it is shown."""
        return self._picture.reading(replica).state

    def capacity(self, replica: str) -> int | None:
        """The most tokens it should hold; None: any number."""
        tokens = self._picture.reading(replica).kv_tokens
        return None if tokens is None else round(tokens * self._room_factor)

    def choice_of(self, target: Target, replica: Replica, want: PlacementRequest) -> Choice:
        """That replica, chosen by others without a ranking, which took for it what a cache that has nothing needs."""
        candidate = msgspec.structs.replace(self._candidate(replica.name, want), need=want.need(0))
        return Choice(target, replica, candidate, Ranked(replica.name, 0.0), want)

    def candidates(self, replicas: Iterable[Replica], want: PlacementRequest) -> list[Candidate]:
        """The replicas as a policy sees them."""
        return [self._candidate(replica.name, want) for replica in replicas]

    def _candidate(self, name: str, want: PlacementRequest) -> Candidate:
        overlap, work = self._index.overlap(name, want.chain, want.prompt), self._work.of(name)
        reading = self._picture.reading(name)
        return Candidate(
            name=name,
            overlap=overlap,
            load=self._held.tokens(name),
            found=work.cached,
            unread=work.pending_prefill,
            capacity=self.capacity(name),
            need=want.need(overlap),
            kv_used=reading.kv_used,
            running=reading.running,
            waiting=reading.waiting,
            weight=reading.weight,
            is_usable=reading.is_usable,
        )
