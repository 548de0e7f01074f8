"""Headrace's own choice in virtual time: the code of the gateway, with the simulation's clock and fleet."""

import random
from collections.abc import Sequence

from engines.protocols import PROTOCOLS, Upstream
from headrace.gateway.operations.estimate import Estimator
from headrace_dev.bench.routing.prepared import Prepared
from headrace_dev.bench.traces import Shape
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler
from routing.attention_load import AttentionLoad, SharedAttentionLoad
from routing.catalog import Replica, Route, Target
from routing.held_tokens import HeldTokens
from routing.prefix_index import Chain, Hasher, PrefixIndex, Sent
from routing.selection import Choice, PlacementRequest, Reading, Selection

PREFIX_INDEX_ENTRIES = 200_000
ROOM_FACTOR = 1.25


class Watched:
    """What the collector last saw of each replica."""

    def __init__(self) -> None:
        self.readings: dict[str, Reading] = {}

    def reading(self, replica: str) -> Reading:
        return self.readings.get(replica) or Reading()


class Gateway:
    """One gateway process with a policy for all its routes."""

    def __init__(self, shape: Shape, policy: str, seed: int) -> None:
        self.name = policy
        self._names = [f"pool/{number}" for number in range(shape.replicas)]
        replicas = tuple(Replica(name, Upstream(PROTOCOLS["sglang"], "", "")) for name in self._names)
        self._route = Route(
            model="",
            created=0,
            context_window=shape.replica.kv_tokens,
            default_max_tokens=shape.max_tokens,
            cache_scope="tenant",
            unknown_fields="reject",
            policy=policy,
            connect_timeout=1,
            first_byte_timeout=1,
            between_events_timeout=1,
            total_timeout=1,
            targets=(Target("pool", replicas),),
        )
        self._hasher = Hasher("bench")
        self._estimator = Estimator()
        self._index = PrefixIndex(tokens=shape.replica.kv_tokens, most=PREFIX_INDEX_ENTRIES)
        self._held, self._work = HeldTokens(), SharedAttentionLoad()
        self._picture = Watched()
        self._selection = Selection(
            self._index,
            self._held,
            self._picture,
            work=self._work,
            room_factor=ROOM_FACTOR,
            dice=random.Random(seed),
        )
        self._chains: dict[int, Chain] = {}
        self._sent: dict[int, tuple[Choice, Sent]] = {}

    def choose(self, one: Prepared, now: float) -> int:
        output = self._estimator.output_tokens(one.model, one.max_tokens)
        want = PlacementRequest(one.prompt, output, self._hasher.chain(one.text, one.scope))
        choice = self._selection.choices(self._route, want)[0]
        name = choice.replica.name
        self._held.enter(name, choice.need)
        self._work.enter(name, choice.work)
        self._sent[one.asked.number] = choice, self._index.sent(name, want.chain, one.prompt, round(now * 1000))
        return self._names.index(name)

    def began(self, one: Prepared, now: float) -> None:
        choice, _ = self._sent[one.asked.number]
        self._work.leave(choice.replica.name, AttentionLoad(pending_prefill=choice.work.pending_prefill))

    def ended(self, one: Prepared, request: Request, now: float) -> None:
        choice, sent = self._sent.pop(one.asked.number)
        self._held.leave(choice.replica.name, choice.need)
        self._work.leave(choice.replica.name, AttentionLoad(choice.work.cached))
        self._estimator.learn_output(one.model, request.generated)
        self._index.reported(sent, request.prompt, request.cached or 0, round(now * 1000))

    def watched(self, replicas: Sequence[Scheduler], now: float) -> None:
        for name, held in zip(self._names, replicas, strict=True):
            tokens = held.profile.kv_tokens
            self._picture.readings[name] = Reading(
                state="ready",
                kv_tokens=tokens,
                kv_used=held.used_tokens / tokens,
                running=len(held.running),
                waiting=len(held.waiting),
            )
