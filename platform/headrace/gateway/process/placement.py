"""Where requests go and what becomes of that: the prefix index and the replicas' load, kept by one web process."""

import asyncio
import time
from collections.abc import Callable, Iterable

import redis.asyncio
from django.conf import settings

from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.operations.operation import Operation
from headrace.gateway.process import metrics
from headrace.gateway.state.placement_request import placement_request
from headrace.gateway.state.request_state import RequestState
from routing.attention_load import AttentionLoad, SharedAttentionLoad
from routing.catalog import Route
from routing.held_tokens import HeldTokens
from routing.prefix_index import Hasher, PrefixIndex
from routing.prefix_index.sharing import Sharing
from routing.selection import Choice, Picture, PlacementRequest, Selection
from tenants.keyring import Principal
from tenants.meters.meter import Meter, room_key, room_of

# How often it is read what all processes' requests hold of the replicas, and have them do.
_REFRESH_SECONDS = 0.15
# The index follows the fleet each so many times.
_FOLLOW_TURNS = 3


class Placement:
    """Composed once per process. `took`, `sent`, `began` and `ended` accompany each attempt; what was not taken is not
    ended.

    replicas: the names of all that routes lead to.
    """

    def __init__(
        self,
        secret: str,
        estimator: Estimator,
        client: "redis.asyncio.Redis",
        replicas: Callable[[], Iterable[str]],
        picture: Picture | None = None,
    ) -> None:
        self._redis, self._replicas = client, replicas
        self._estimator = estimator
        self._hasher = Hasher(secret)
        self._sharing = Sharing(client)
        self.index = PrefixIndex(tokens=settings.KV_TOKENS, most=settings.PREFIX_INDEX_ENTRIES, tell=self._sharing.tell)
        self.held = HeldTokens(room_key)
        self.work = SharedAttentionLoad()
        self.selection = Selection(self.index, self.held, picture, work=self.work, room_factor=settings.ROOM_FACTOR)

    async def tell_for_ever(self) -> None:
        """Tell the other processes what this one sent where."""
        await self._sharing.send_for_ever()

    async def hear_for_ever(self) -> None:
        """Hear of the others' prompts."""
        await self._sharing.hear_for_ever(self.index)

    async def follow_load(self) -> None:
        """Keep up with what the replicas hold."""
        turn = 0
        while True:
            try:
                await self.held.refresh(self._redis, self._replicas())
                await self.work.refresh(self._redis)
            except redis.RedisError:
                await asyncio.sleep(1.0)
            if turn % _FOLLOW_TURNS == 0:
                # As they are now: while Redis answered, a replica may have come, and have been sent its first prompts.
                self.selection.follow(set(self._replicas()))
                metrics.PREFIX_ENTRIES.set(self.index.entries)
                metrics.PREFIX_BYTES.set(self.index.bytes)
            turn += 1
            await asyncio.sleep(_REFRESH_SECONDS)

    def want(self, route: Route, operation: Operation, principal: Principal) -> PlacementRequest:
        """What is to be placed, by what this process learned of prompts and answers."""
        return placement_request(route, operation, principal, estimator=self._estimator, hasher=self._hasher)

    def rooms(self, choices: Iterable[Choice]) -> list[tuple[Meter, int]]:
        """The room each choice's replica has, and how much of it the request takes."""
        return [(room_of(one.replica.name, one.candidate.capacity), one.need) for one in choices]

    def took(self, request: RequestState) -> None:
        """The request holds room of its replica, in Redis."""
        if not request.has_room:
            request.has_room = True
            self.held.enter(request.choice.replica.name, request.choice.need)
            request.work = request.choice.work
            self.work.enter(request.choice.replica.name, request.work)

    def sent(self, request: RequestState) -> None:
        """The request's replica is about to be asked."""
        choice = request.choice
        if request.sent is not None:
            return
        now = int(time.time() * 1000)
        request.sent = self.index.sent(choice.replica.name, choice.want.chain, choice.want.prompt, now)

    def began(self, request: RequestState) -> None:
        """The first byte came: the prompt is read. May be repeated."""
        read = AttentionLoad(pending_prefill=request.work.pending_prefill)
        request.work -= read
        self.work.leave(request.replica.name, read)

    def ended(self, request: RequestState) -> None:
        """The attempt is over: what it held is free, and what the engine said of its cache is learned.

        May be repeated."""
        sent, choice = request.sent, request.choice
        if request.has_room:
            request.has_room = False
            self.held.leave(choice.replica.name, choice.need)
            self.work.leave(choice.replica.name, request.work)
            request.work = AttentionLoad()
        if sent is None:
            return
        request.sent = None
        if not request.has_first_byte:
            self.index.failed(sent)
            return
        counts = request.counts(self._estimator.bytes_per_token(request.tokenizer))
        self._estimator.learn_output(request.operation.model, counts.output_tokens // request.operation.n)
        if request.meter.has_cached and counts.input_tokens:
            predicted = self.index.reported(
                sent, counts.input_tokens, counts.cached_input_tokens, int(time.time() * 1000)
            )
            metrics.prefix(request.operation.model, choice.target.name, predicted, counts.cached_input_tokens)
