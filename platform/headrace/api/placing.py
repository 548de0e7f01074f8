"""Where requests go and what becomes of that: the prefix index and the replicas' load, kept by one web process."""

import time

import redis.asyncio
from django.conf import settings

from headrace.api import metrics
from headrace.api.chat_request import ChatRequest
from headrace.api.estimate import Estimator
from headrace.api.exchange import Exchange
from headrace.api.prompt_text import prompt_text
from routing.catalog import Route
from routing.held import HeldTokens
from routing.prefix_index import Hasher, PrefixIndex
from routing.prefix_index.sharing import Sharing
from routing.selection import Choice, Picture, Selection, Want


class Placing:
    """Composed once per process. `sent` and `ended` bracket each attempt; only what was sent is ended."""

    def __init__(
        self, secret: str, estimator: Estimator, client: "redis.asyncio.Redis", picture: Picture | None = None
    ) -> None:
        self._estimator = estimator
        self._hasher = Hasher(secret)
        self._sharing = Sharing(client)
        self.index = PrefixIndex(tokens=settings.KV_TOKENS, most=settings.PREFIX_INDEX_ENTRIES, tell=self._sharing.tell)
        self.held = HeldTokens()
        self.selection = Selection(self.index, self.held, picture, room_factor=settings.ROOM_FACTOR)

    async def tell_for_ever(self) -> None:
        """Tell the other processes what this one sent where."""
        await self._sharing.send_for_ever()

    async def hear_for_ever(self) -> None:
        """Hear of the others' prompts."""
        await self._sharing.hear_for_ever(self.index)

    def want(self, route: Route, chat: ChatRequest, tenant: str, prompt: int) -> Want:
        """What is to be placed: `prompt` is the estimate of its tokens."""
        scope = "" if route.cache_scope == "shared" else tenant
        most = chat.max_tokens or route.default_max_tokens
        output = chat.n * self._estimator.output_tokens(chat.model, most)
        return Want(prompt, output, self._hasher.chain(prompt_text(chat), scope))

    def choices(self, route: Route, chat: ChatRequest, tenant: str, prompt: int) -> list[Choice]:
        """The replicas this chat may go to, best first."""
        return self.selection.choices(route, self.want(route, chat, tenant, prompt))

    def sent(self, exchange: Exchange) -> None:
        """The exchange's replica is about to be asked."""
        choice = exchange.choice
        if exchange.sent is not None:
            return
        self.held.enter(choice.replica.name, choice.need)
        now = int(time.time() * 1000)
        exchange.sent = self.index.sent(choice.replica.name, choice.want.chain, choice.want.prompt, now)

    def ended(self, exchange: Exchange) -> None:
        """The attempt is over: what it held is free, and what the engine said of its cache is learned. Once."""
        sent, choice = exchange.sent, exchange.choice
        if sent is None:
            return
        exchange.sent = None
        self.held.leave(choice.replica.name, choice.need)
        if not exchange.has_first_byte:
            self.index.failed(sent)
            return
        counts = exchange.counts(self._estimator.bytes_per_token(exchange.tokenizer))
        self._estimator.learn_output(exchange.chat.model, counts.output_tokens // exchange.chat.n)
        if exchange.meter.has_cached and counts.input_tokens:
            predicted = self.index.reported(
                sent, counts.input_tokens, counts.cached_input_tokens, int(time.time() * 1000)
            )
            metrics.prefix(exchange.chat.model, choice.target.name, predicted, counts.cached_input_tokens)
        metrics.PREFIX_ENTRIES.set(self.index.entries)
        metrics.PREFIX_BYTES.set(self.index.bytes)
