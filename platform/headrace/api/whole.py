"""An answer that comes whole: read, checked, counted, and given on under our own name."""

import asyncio
import time
from typing import Any

import msgspec
from msgspec import UNSET

from engines.errors import BadAnswer, Failed, Incomplete, UpstreamError
from engines.refusals import told_error
from engines.text_repair import repair_text
from headrace.api import metrics
from headrace.api.assembly import assemble
from headrace.api.attempt import abort, may_run_on, open_upstream
from headrace.api.chunks import FAILURES, as_text
from headrace.api.errors import ApiError
from headrace.api.exchange import Exchange
from headrace.api.gateway import Gateway
from headrace.api.limit_headers import answer_headers
from headrace.api.mending import decode
from headrace.api.raw import NULL, is_empty
from headrace.api.streaming import StreamingConsumer
from headrace.api.tool_calls import passable
from headrace.api.usage_meter import Counts, as_openai

_LIMIT = 64 * 2**20
# How long an aborted engine may take to end its answer; it takes about 0.3 s.
_ABORT_SECONDS = 2.0


class _Message(msgspec.Struct):
    role: str | None = None
    content: Any = UNSET
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: msgspec.Raw = NULL


class _Choice(msgspec.Struct):
    message: _Message
    index: int | None = None
    finish_reason: str | None = None

    @property
    def lacks_anything(self) -> bool:
        return self.index is None or self.message.role is None or self.message.content is UNSET


class _Completion(msgspec.Struct):
    choices: msgspec.Raw = msgspec.Raw(b"[]")
    usage: msgspec.Raw = NULL


class _Out(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: msgspec.Raw
    usage: dict[str, Any]
    object: str = "chat.completion"


_completion = msgspec.json.Decoder(_Completion)
_choices = msgspec.json.Decoder(list[_Choice] | None)


class WholeAnswer:
    """One answer that is not streamed. An `attempt` reads it; `complete` or `fail` gives it, once settled."""

    def __init__(self, consumer: StreamingConsumer, gateway: Gateway, exchange: Exchange) -> None:
        self._consumer, self._gateway, self._exchange = consumer, gateway, exchange
        self._reading: asyncio.Task[None] | None = None
        self._raw_choices = msgspec.Raw(b"[]")

    async def attempt(self) -> None:
        """Read the answer of the exchange's replica to its end. Raises engines.errors.UpstreamError."""
        # In a task of its own: when the client leaves, the engine is told to end, and the answer it ends with says
        # how much it took.
        self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        answer = await open_upstream(self._gateway, self._exchange)
        async with answer:
            try:
                if self._exchange.streams_upstream:
                    self._take_assembled(await assemble(answer, self._exchange))
                else:
                    self._take(await answer.whole(_LIMIT))
            except UpstreamError:
                if self._exchange.interruption is None:
                    self._exchange.first_byte_at = None  # nothing of it reaches the client, and nothing is billed
                raise

    def _check(self, reasons: list[str | None]) -> None:
        """Whether the answer is a whole one; of one that was interrupted only its use is wanted."""
        if self._exchange.interruption is not None:
            return
        if not all(reasons):
            raise Incomplete("no finish_reason")
        if not FAILURES.isdisjoint(reasons):
            raise Failed("the engine gave up")

    def _take_assembled(self, choices: list[dict[str, Any]]) -> None:
        if not choices or not self._exchange.has_first_byte:
            raise BadAnswer("an empty stream")
        self._check([choice["finish_reason"] for choice in choices])
        self._raw_choices = msgspec.Raw(msgspec.json.encode(choices))
        self._exchange.finish_reason = choices[-1]["finish_reason"]

    def _take(self, body: bytes) -> None:
        body = repair_text(body)
        try:
            completion = decode(_completion, body)
            choices = _choices.decode(completion.choices)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswer("not a chat completion") from error
        if not choices:
            raise told_error(body) or BadAnswer("no choices")
        exchange = self._exchange
        exchange.start_answer(now := time.monotonic())
        exchange.last_byte_at = exchange.last_event_at = now
        raw = bytes(completion.choices)
        self._raw_choices = msgspec.Raw(passable(_filled(raw) if any(c.lacks_anything for c in choices) else raw))
        exchange.finish_reason = choices[-1].finish_reason
        for choice in choices:
            if text := _text(choice.message):
                exchange.meter.delivered(text)
        if not is_empty(completion.usage):
            exchange.meter.final(completion.usage)
        self._check([choice.finish_reason for choice in choices])

    async def give_up(self, error: UpstreamError) -> None:
        """End an attempt that failed by `error`: when this returns, its connection is closed."""
        attempt, upstream, reading = self._exchange.attempt, self._exchange.replica.upstream, self._reading
        if attempt is not None and may_run_on(error):
            await asyncio.wait({self._gateway.background(abort(self._gateway, upstream, attempt))}, timeout=0.5)
        if reading is not None and not reading.done():  # its time is over, while it still reads
            reading.cancel()
            await asyncio.wait({reading})
            self._exchange.first_byte_at = None

    async def hang_up(self) -> None:
        """Stop the engine and hear what it took."""
        reading, exchange = self._reading, self._exchange
        if reading is None or reading.done():
            return
        attempt, upstream = exchange.attempt, exchange.replica.upstream
        # An abort by name does not reach the copies of n > 1: those end with the connection.
        if attempt is not None and attempt.n == 1 and await abort(self._gateway, upstream, attempt):
            await asyncio.wait({reading}, timeout=_ABORT_SECONDS)
            if not reading.done():
                metrics.ABORTS.labels("ignored").inc()
        reading.cancel()
        await asyncio.wait({reading})
        # An engine that breaks the connection off at an abort has told as little as one that never answered.
        is_unheard = reading.cancelled() or reading.exception() is not None
        is_out = exchange.attempt is not None and exchange.attempt.is_out
        exchange.is_blind = is_out and is_unheard and not exchange.has_first_byte

    async def complete(self, counts: Counts) -> None:
        exchange = self._exchange
        out = _Out(
            id=f"chatcmpl-{exchange.id}",
            created=int(time.time()),
            model=exchange.chat.model,
            choices=self._raw_choices,
            usage=as_openai(counts),
        )
        await self._consumer.respond(200, msgspec.json.encode(out), answer_headers(exchange))

    async def fail(self, error: ApiError) -> None:
        await self._consumer.refuse(error)


def _filled(raw: bytes) -> bytes:
    """Choices with what strict clients want to find in each."""
    wholes = msgspec.json.decode(raw)
    for place, whole in enumerate(wholes):
        whole["index"] = place if whole.get("index") is None else whole["index"]
        whole["message"] = {"content": None} | whole["message"] | {"role": whole["message"].get("role") or "assistant"}
    return msgspec.json.encode(wholes)


def _text(message: _Message) -> str:
    """All that was generated. Some send their reasoning under both names."""
    reasoning = as_text(message.reasoning_content or message.reasoning)
    text = as_text(message.content) + reasoning + as_text(message.refusal)
    return text if is_empty(message.tool_calls) else text + bytes(message.tool_calls).decode()
