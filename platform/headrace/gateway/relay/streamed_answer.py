"""A streamed answer: an engine's events become the client's, each as it comes, counted on the way."""

import asyncio
import time

import msgspec

from engines.answer import Answer
from engines.errors import BadAnswer, Disconnected, Incomplete, UpstreamError
from engines.sse import EventTooLarge, Framer
from headrace.gateway.admission.limit_headers import answer_headers
from headrace.gateway.answers import chunks
from headrace.gateway.answers.extra_fields import Beside
from headrace.gateway.answers.schema import StreamedChoice
from headrace.gateway.answers.streamed_choices import StreamedChoices
from headrace.gateway.answers.usage_meter import Counts, as_openai
from headrace.gateway.errors import ApiError
from headrace.gateway.relay.consumer import StreamingConsumer
from headrace.gateway.relay.upstream_call import may_run_on, no_stream, open_upstream, see_out
from headrace.gateway.state.request_state import RequestState
from headrace.gateway.web_process import Gateway

_EVENT_STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),  # a proxy that compresses waits for more to compress
    (b"x-accel-buffering", b"no"),
]
# How long after its last finish_reason, and whatever it says beyond it, a stream may take to its end.
_END_SECONDS = 10.0
_KEEP_ALIVE = b": keep-alive\n\n"


class StreamedAnswer:
    """One streamed answer. An `attempt` relays all but the end; `complete` or `fail` says the end, once settled."""

    def __init__(self, consumer: StreamingConsumer, gateway: Gateway, request: RequestState) -> None:
        self._consumer, self._gateway, self._request = consumer, gateway, request
        self._answer: Answer | None = None
        self._is_asked = False  # whether an upstream may be working on it
        self._comment: asyncio.Task[None] | None = None
        self._held: list[bytes] = []
        self._finished: set[int] = set()
        self._read = StreamedChoices(request.operation)
        self._beside = Beside()
        self._end_by: float | None = None
        self._is_cut = False
        self._silent_since = time.monotonic()
        self._patience = gateway.headers_after
        self._frame = chunks.Frame(
            request.id, int(time.time()), request.operation.model, usage=request.operation.include_usage
        )
        request.on_silence = self._on_silence

    async def attempt(self) -> None:
        """Relay the request's replica's answer until it is done. Raises engines.errors.UpstreamError."""
        self._held.clear()
        self._finished.clear()
        self._read, self._beside = StreamedChoices(self._request.operation), Beside()
        self._end_by = None
        self._is_asked = True
        self._answer = await open_upstream(self._gateway, self._request)
        if not self._answer.is_event_stream:
            raise await no_stream(self._answer)
        try:
            await self._relay(self._answer)
        except EventTooLarge as error:
            raise BadAnswer(str(error)) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswer("an event that is not an operation's") from error
        if not self._request.has_first_byte:
            raise BadAnswer("an empty stream")
        if not self._is_finished:
            raise Incomplete("no finish_reason")

    async def _relay(self, answer: Answer) -> None:
        framer = Framer()
        request = self._request
        while piece := await self._more(answer):
            if self._gateway.pulse.is_in_doubt():
                await self._gateway.pulse.confirm()
            ended = False
            for data in framer.feed(piece):
                ended = self._event(data)
                if ended:
                    break
            await self._flush()
            if ended:
                self._leave(answer)
                return
        for data in () if self._is_cut else framer.end():
            if self._event(data):
                break
        await self._flush()
        self._leave(answer)
        request.last_event_at = time.monotonic()

    async def _more(self, answer: Answer) -> bytes:
        """The next bytes; none at the end. Once every choice has finished, only its use and [DONE] may be missing: an
        upstream that keeps those back for long, or breaks off, has answered all the same."""
        if not self._is_finished:
            return await answer.read()
        self._end_by = self._end_by or time.monotonic() + _END_SECONDS
        try:
            async with asyncio.timeout(self._end_by - time.monotonic()):
                return await answer.read()
        except (TimeoutError, Disconnected, BadAnswer):
            self._is_cut = True
            return b""

    def _leave(self, answer: Answer) -> None:
        """Its last bytes may still be to come; read, they let the connection serve the next request."""
        if not answer.is_read:
            self._answer = None
            self._gateway.background(_read_out(answer))

    @property
    def _is_finished(self) -> bool:
        return len(self._finished) >= self._request.operation.n

    def _event(self, data: bytes) -> bool:
        """Take one event of the upstream's; whether it was the last."""
        if chunks.is_done(data):
            return True
        if chunks.says_nothing(data):
            return False
        chunk = chunks.read(data)
        is_begun = self._request.has_first_byte
        chunks.raise_failure(chunk, data)
        choices, raw = self._read.read(bytes(chunk.choices), is_begun=is_begun)
        chunks.count(chunk, data, choices, self._request.meter)
        if choices:
            texts = chunks.outputs(choices, chunk, is_begun=is_begun)
            self._choices(choices, texts, raw, self._beside.next(chunk))
        else:
            self._beside.take(chunk)
        return False

    def _choices(self, choices: list[StreamedChoice], texts: list[str], raw: bytes, beside: bytes) -> None:
        request = self._request
        now = request.last_event_at = time.monotonic()
        request.finish_reason = self._read.finish_word or request.finish_reason
        if self._read.failure is not None:
            raise self._read.failure
        for choice, text in zip(choices, texts, strict=True):
            if text:
                request.meter.delivered(text, choice.index)
                self._end_by = None
            if choice.finish_reason:
                self._finished.add(choice.index)
            elif not text:
                continue
            if request.first_byte_at is None:
                request.start_answer(now)
            request.last_byte_at = now
        self._held.append(self._frame.event(raw, beside))

    async def _flush(self) -> None:
        """Send what is held; nothing before the first byte, so that a failure until then can have its own status."""
        if not self._held or not self._request.has_first_byte:
            return
        await self._end_comment()  # whoever is interrupted here still has what is held
        body = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held.clear()
        await self._write(body)

    async def _write(self, body: bytes, *, more: bool = True) -> None:
        await self._end_comment()
        await self._send(body, more=more)
        self._request.last_event_at = time.monotonic()

    async def _end_comment(self) -> None:
        """Wait until a comment that is being written has been."""
        if self._comment is not None:
            self._request.sending_since = time.monotonic()
            await asyncio.wait({self._comment})
            self._comment = None

    async def _send(self, body: bytes, *, more: bool = True) -> None:
        request = self._request
        request.sending_since = time.monotonic()
        if not self._consumer.started:
            await self._consumer.start(200, _EVENT_STREAM + answer_headers(request))
        await self._consumer.write(body, more=more)
        request.sending_since = None
        self._silent_since = time.monotonic()

    def _on_silence(self, now: float) -> None:
        """While nothing comes, headers and comments keep proxies and clients from hanging up."""
        if self._request.sending_since is None and now - self._silent_since >= self._patience:
            self._silent_since = now
            self._comment = asyncio.create_task(self._send(_KEEP_ALIVE))

    async def hang_up(self) -> None:
        """Stop the engine, which nobody waits for: it is told, and watched, in the background."""
        self._stop()

    async def give_up(self, error: UpstreamError) -> None:
        """End an attempt that failed by `error`: when this returns, it is closed, and as dead as we can make it."""
        if may_run_on(error):
            if (stopping := self._stop()) is not None:
                await asyncio.wait({stopping})
        else:
            self._is_asked = False

    def _stop(self) -> "asyncio.Task[None] | None":
        answer, self._answer = self._answer, None
        is_asked, self._is_asked = self._is_asked, False
        request = self._request
        if not is_asked or request.attempt is None:
            return None
        return self._gateway.background(see_out(self._gateway, request.replica.upstream, request.attempt, answer))

    async def complete(self, counts: Counts) -> None:
        """The end of a good answer: the usage if it was asked for, and [DONE]."""
        self._request.on_silence = None
        beside = self._beside.rest()
        last = self._frame.event(b"[]", beside) if beside else b""
        if self._request.operation.include_usage:
            last = self._frame.usage(as_openai(counts), beside)
        await self._write(last + chunks.DONE, more=False)

    async def fail(self, error: ApiError) -> None:
        """The end of a failed answer: its own status while nothing was sent, else an error event and no [DONE]."""
        self._request.on_silence = None
        # What was counted is delivered, whatever came in the same read.
        held = b"".join(self._held) if self._request.has_first_byte else b""
        if held or self._comment is not None or self._consumer.started:
            await self._write(held + chunks.error_event(error.as_json()), more=False)
        else:
            await self._consumer.refuse(error)


async def _read_out(answer: Answer) -> None:
    try:
        async with asyncio.timeout(1.0):
            while await answer.read():
                continue
    except (TimeoutError, Disconnected, BadAnswer):
        return  # it kept the connection open, or broke it: closing is all there is to do
    finally:
        await answer.close()
