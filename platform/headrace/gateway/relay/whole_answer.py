"""An answer that comes whole: read, checked, counted, and given on under our own name."""

import asyncio
import time
from typing import Any

import msgspec

from engines.answer import Answer
from engines.errors import BadAnswer, Incomplete, Rejected, UpstreamError
from engines.text_repair import repair_text
from headrace.gateway.admission.limit_headers import answer_headers
from headrace.gateway.answers.extra_fields import Beside
from headrace.gateway.answers.failures import FailurePlaces, told_beside, told_in_choices
from headrace.gateway.answers.finish_reasons import failure
from headrace.gateway.answers.json_repair import decode
from headrace.gateway.answers.output import unlisted_outputs
from headrace.gateway.answers.usage_locations import note_usage
from headrace.gateway.answers.usage_meter import Counts, as_openai
from headrace.gateway.answers.whole_choices import WholeChoices, read_choices, substance
from headrace.gateway.errors import ApiError
from headrace.gateway.process import metrics
from headrace.gateway.relay.assembly import assemble
from headrace.gateway.relay.consumer import StreamingConsumer
from headrace.gateway.relay.upstream_call import abort, may_run_on, open_upstream
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway

_LIMIT = 64 * 2**20
# How long an aborted engine may take to end its answer; it takes about 0.3 s.
_ABORT_SECONDS = 2.0


class _Completion(FailurePlaces):
    choices: msgspec.Raw = msgspec.Raw(b"[]")


class _Out(msgspec.Struct):
    id: str
    created: int
    model: str
    choices: msgspec.Raw
    usage: dict[str, Any]
    object: str = "chat.completion"


_completion = msgspec.json.Decoder(_Completion)


class WholeAnswer:
    """One answer that is not streamed. An `attempt` reads it; `complete` or `fail` gives it, once settled."""

    def __init__(self, consumer: StreamingConsumer, gateway: Gateway, request: RequestState) -> None:
        self._consumer, self._gateway, self._request = consumer, gateway, request
        self._reading: asyncio.Task[None] | None = None
        self._raw_choices = msgspec.Raw(b"[]")
        self._beside = Beside()

    async def attempt(self) -> None:
        """Read the answer of the request's replica to its end. Raises engines.errors.UpstreamError."""
        # In a task of its own: when the client leaves, the engine is told to end, and the answer it ends with says
        # how much it took.
        self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        answer = await self._open()
        self._beside = Beside()
        async with answer:
            try:
                # Some send whole what they were asked to stream, or stream all that they send.
                if answer.is_event_stream:
                    self._take_assembled(await assemble(answer, self._request, self._beside))
                else:
                    self._take(await answer.whole(_LIMIT))
            except UpstreamError:
                if self._request.interruption is None:
                    self._request.first_byte_at = None  # nothing of it reaches the client, and nothing is billed
                raise

    async def _open(self) -> Answer:
        """Ask the replica; once more for a whole answer where it refuses to stream. Raises UpstreamError."""
        request, streamless = self._request, self._gateway.streamless
        request.takes_no_stream = streamless.contains(request.replica.key)
        try:
            return await open_upstream(self._gateway, request)
        except Rejected as error:
            if error.kind != "stream" or not request.streams_upstream:
                raise
        streamless.add(request.replica.key)
        request.takes_no_stream = True
        return await open_upstream(self._gateway, request)

    def _check(self, words: list[str | None]) -> None:
        """Whether the answer is a whole one; of one that was interrupted only its use is wanted."""
        if self._request.interruption is not None:
            return
        if not all(words):
            raise Incomplete("no finish_reason")
        for word in words:
            if (error := failure(word)) is not None:
                raise error

    def _take_assembled(self, choices: WholeChoices) -> None:
        if not choices.choices or not self._request.has_first_byte:
            raise BadAnswer("an empty stream")
        self._keep(choices)
        self._check(choices.words)

    def _keep(self, choices: WholeChoices) -> None:
        self._raw_choices = msgspec.Raw(choices.raw)
        self._request.finish_reason = choices.words[-1]

    def _take(self, body: bytes) -> None:
        body = repair_text(body)
        try:
            completion = decode(_completion, body)
            read = read_choices(bytes(completion.choices))
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswer("not a chat completion") from error
        request = self._request
        if not read.choices:
            raise told_beside(body) or BadAnswer("no choices")
        texts = [substance(choice) for choice in read.choices]
        if not all(texts) and len(unlisted := unlisted_outputs(bytes(completion.choices))) == len(texts):
            texts = [text or more for text, more in zip(texts, unlisted, strict=True)]
        if request.interruption is None:
            self._raise_failure(completion, body)
        request.came_whole = True
        request.start_answer(now := time.monotonic())
        request.last_byte_at = request.last_event_at = now
        self._beside.take(completion)
        self._keep(read)
        for choice, text in zip(read.choices, texts, strict=True):
            if text:
                request.meter.delivered(text, choice.index)
        note_usage(completion, completion.choices, request.meter, body, index=None, is_last=True)
        self._check(read.words)

    @staticmethod
    def _raise_failure(completion: _Completion, body: bytes) -> None:
        """Raise the UpstreamError that an answer tells which has choices all the same."""
        error = told_beside(body) if completion.may_fail else None
        error = error or told_in_choices(bytes(completion.choices))
        if error is not None:
            raise error

    async def give_up(self, error: UpstreamError) -> None:
        """End an attempt that failed by `error`: when this returns, its connection is closed."""
        attempt, upstream, reading = self._request.attempt, self._request.replica.upstream, self._reading
        if attempt is not None and may_run_on(error):
            await asyncio.wait({self._gateway.background(abort(self._gateway, upstream, attempt))}, timeout=0.5)
        if reading is not None and not reading.done():  # its time is over, while it still reads
            reading.cancel()
            await asyncio.wait({reading})
            self._request.first_byte_at = None

    async def hang_up(self) -> None:
        """Stop the engine and hear what it took."""
        reading, request = self._reading, self._request
        if reading is None or reading.done():
            return
        attempt, upstream = request.attempt, request.replica.upstream
        # An abort by name does not reach the copies of n > 1: those end with the connection.
        if attempt is not None and attempt.n == 1 and await abort(self._gateway, upstream, attempt):
            await asyncio.wait({reading}, timeout=_ABORT_SECONDS)
            if not reading.done():
                metrics.ABORTS.labels("ignored").inc()
        reading.cancel()
        await asyncio.wait({reading})
        # An engine that breaks the connection off at an abort has told as little as one that never answered.
        is_unheard = reading.cancelled() or reading.exception() is not None
        is_out = request.attempt is not None and request.attempt.is_out
        request.is_blind = is_out and is_unheard and not request.has_first_byte

    async def complete(self, counts: Counts) -> None:
        request = self._request
        out = _Out(
            id=f"chatcmpl-{request.id}",
            created=int(time.time()),
            model=request.operation.model,
            choices=self._raw_choices,
            usage=as_openai(counts),
        )
        body = msgspec.json.encode(out)[:-1] + self._beside.all() + b"}"
        await self._consumer.respond(200, body, answer_headers(request))

    async def fail(self, error: ApiError) -> None:
        await self._consumer.refuse(error)
