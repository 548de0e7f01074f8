"""One admitted request, from its hold to its settlement: what it is, how far it is, and who may interrupt it."""

import asyncio
import time
from collections.abc import Callable
from math import ceil
from uuid import UUID

import msgspec

from billing.price_book import Quote
from billing.usage import Progress, UsageEvent, iso, priced
from engines.errors import TimedOut
from engines.protocols import Attempt
from headrace.gateway.answers.usage_meter import Counts, UsageMeter
from headrace.gateway.operations.estimate import tokenizer
from headrace.gateway.operations.operation import Operation
from headrace.gateway.state.charges import Quotes
from routing.attention_load import AttentionLoad
from routing.catalog import Route
from routing.placement import Place
from routing.prefix_index import Sent
from routing.selection import Choice
from tenants.keyring import Principal
from tenants.meters.holds import Level, Taken

_encode = msgspec.json.encode
# Slower than any engine in service reads a prompt: SGLang takes 1,000 to 1,400 a second on a laptop's processor.
_PREFILL_TOKENS_PER_SECOND = 1000
# And slower than any writes, to whom nobody would wait: people read faster.
_DECODE_TOKENS_PER_SECOND = 5
# Hosted models write 30 to 150 tokens a second and choice.
UNSEEN_TOKENS_PER_SECOND = 100


class ClientLeft(Exception):
    """Nobody reads the answer any more."""


class RequestState:
    """The state of one request. Its own task changes it, and whoever settles it; others call `interrupt` and `expire`.

    Times named `..._at` are `time.monotonic()` seconds. `last_event_at` is when the upstream last made progress,
    `sending_since` when a write to the client began that is not done.
    """

    def __init__(
        self,
        *,
        request_id: UUID,
        operation: Operation,
        principal: Principal,
        route: Route,
        choice: Choice,
        taken: Taken,
        event: UsageEvent,
        quotes: Quotes,
        prompt_estimate: int,
        held_prompt: int,
        most_prompt: int,
        max_tokens: int,
        priority: str,
    ) -> None:
        self.id = str(request_id)
        self.operation, self.principal, self.route = operation, principal, route
        self.choice, self.target, self.replica = choice, choice.target, choice.replica  # where it is
        self.taken, self.event = taken, event
        self.quotes = quotes  # by target's name: its price when the request was admitted, None = unpriced
        self.prompt_estimate, self.max_tokens = prompt_estimate, max_tokens
        self.held_prompt = held_prompt  # the tokens of it for which budgets were asked
        self.most_prompt = most_prompt  # no more are billed, whatever the upstream says
        self.priority = priority  # its class in the queue, and for engines that order by it
        self.levels: list[Level] = []
        self.held_max_tokens = max_tokens  # what admission held for each choice: no later attempt may ask for more
        self.meter = self._new_meter()
        # By the engine's tokenizer, where the upstream counted nothing: the delivered text, the prompt.
        self.counted: int | None = None
        self.counted_prompt: int | None = None
        self.attempt: Attempt | None = None
        self.left_out: frozenset[str] = frozenset()  # fields of ours that its replica refused
        self.is_blind = False  # whether a whole answer was given up without hearing what it took
        self.takes_no_stream = False  # whether its upstream refuses to stream the model
        self.came_whole = False  # whether its upstream sent the answer in one piece
        self.opened = False
        self.announced = False  # whether Redis knows that the upstream was opened
        self.admitted_at = self.last_event_at = time.monotonic()
        self.attempt_at: float | None = None
        self.first_byte_at: float | None = None
        self.last_byte_at: float | None = None
        self.sending_since: float | None = None
        self.on_first_byte: Callable[[], None] | None = None
        self.is_watched = False  # whether the server itself ends connections whose client takes nothing
        self.finish_reason: str | None = None
        self.has_room = False  # whether it holds room of its replica
        self.work = AttentionLoad()  # what it still has its replica do
        self.sent: Sent | None = None  # what the prefix index believed when its replica was asked; None: it was not
        self.on_silence: Callable[[float], None] | None = None  # told the time each beat, while all deadlines hold
        self.waits_for: list[Place] = []  # where it may go once there is room; empty: it has a replica
        self.copies: list[RequestState] = []  # for shadows, those that run: they end when its client leaves
        self.step = 0  # of its moves, the one that led to where it is
        self.moves = 0  # asked of Redis; each has a number of its own
        self.task: asyncio.Task[None] | None = None
        self.interruption: Exception | None = None
        self.expiry: TimedOut | None = None  # why its attempt, and it alone, has to end
        self.left_at: float | None = None  # when it was interrupted
        self.is_ending = False  # whether its settlement has begun
        self.is_reaped = False  # whether a reaper settled it first, so that it goes on no longer

    # --- how far it is ------------------------------------------------------------------------------------------------
    @property
    def has_first_byte(self) -> bool:
        return self.first_byte_at is not None

    @property
    def tokenizer(self) -> str:
        return tokenizer(self.target)

    def _new_meter(self) -> UsageMeter:
        return UsageMeter(
            most_prompt=self.most_prompt, most_output=self.most_output, text_bytes=self.operation.text_bytes
        )

    @property
    def most_output(self) -> int:
        return self.operation.n * self.max_tokens

    @property
    def quote(self) -> Quote | None:
        """The price of the target that serves it."""
        return self.quotes.get(self.target.name)

    @property
    def streams_upstream(self) -> bool:
        """Whether its engine is asked for a stream: also for most whole answers (`Protocol.streams_whole`), and for all
        long ones."""
        streams_whole = self.replica.upstream.protocol.streams_whole(self.operation.n) or self.is_long_whole
        return self.operation.stream or (streams_whole and not self.takes_no_stream)

    @property
    def is_long_whole(self) -> bool:
        """Whether an answer without a byte before its end may take so long that nobody else could be asked after it: as
        a stream a mute engine is found out by its first byte. Of engines of our own."""
        is_ours = not self.replica.upstream.protocol.is_hosted
        return is_ours and self.whole_seconds > self.route.total_timeout / 2

    @property
    def prompt_seconds(self) -> float:
        """How long an engine may take until it has read the prompt and written a first token."""
        return self.route.first_byte_timeout + self.prompt_estimate / _PREFILL_TOKENS_PER_SECOND

    @property
    def whole_seconds(self) -> float:
        """How long an engine may take until it has written the whole answer."""
        return self.prompt_seconds + self.max_tokens / _DECODE_TOKENS_PER_SECOND

    @property
    def ttft_ms(self) -> float | None:
        return None if self.first_byte_at is None else round((self.first_byte_at - self.admitted_at) * 1000, 2)

    def tpot_ms(self, output_tokens: int) -> float | None:
        """Milliseconds per output token after the first; None for an answer of one token, or one that came whole."""
        if self.first_byte_at is None or self.last_byte_at is None or output_tokens < 2 or not self.operation.stream:
            return None
        return round((self.last_byte_at - self.first_byte_at) * 1000 / (output_tokens - 1), 3)

    def counts(self, bytes_per_token: float) -> Counts:
        """What would be billed if it ended now."""
        if self.is_reaped and not self.operation.stream:
            return Counts()  # an answer that is not given any more
        protocol = self.replica.upstream.protocol
        if self.is_blind:
            # The answer was given up unseen: an engine stopped with its connection; a provider that does not stream
            # wrote all the while.
            prompt = min(self.prompt_estimate, self.most_prompt)
            is_writing = protocol.bills_on and not self.streams_upstream
            return Counts(prompt, 0, self._written_unseen() if is_writing else 0, 0, "estimated")
        if not self.has_first_byte:
            return Counts()
        return self.meter.counts(
            prompt_estimate=self.prompt_estimate,
            counted_prompt=self.counted_prompt,
            counted=self.counted,
            bytes_per_token=0 if protocol.token_per_event and not self.came_whole else bytes_per_token,
        )

    def _written_unseen(self) -> int:
        """The output tokens that an attempt has had the time to write, at most as many as it was asked for."""
        if self.attempt_at is None:
            return 0
        seconds = (self.left_at or time.monotonic()) - self.attempt_at
        return min(self.most_output, ceil(self.operation.n * seconds * UNSEEN_TOKENS_PER_SECOND))

    def limited_input(self, counts: Counts) -> int:
        """What its input tokens/min keep of `counts`: a cached token weighs what its tenant's do."""
        return counts.input_tokens - int(counts.cached_input_tokens * (1 - self.principal.cached_input_weight))

    def progress(self, bytes_per_token: float) -> bytes:
        """For the hold: what a reaper would settle with. Empty while the upstream was not opened."""
        if not self.opened:
            return b""
        # Of a whole answer its client has nothing yet.
        counts = self.counts(bytes_per_token) if self.operation.stream else Counts()
        return _encode(
            Progress(
                input_tokens=counts.input_tokens,
                limited_input_tokens=self.limited_input(counts),
                cached_input_tokens=counts.cached_input_tokens,
                output_tokens=counts.output_tokens,
                reasoning_tokens=counts.reasoning_tokens,
                usage_source=counts.source,
                ttft_ms=self.ttft_ms,
                upstream_id=self.attempt.rid if self.attempt else None,
                target=self.target.name,
                replica=self.replica.name,
                price=self.quote.version or None if self.quote else None,
                rates=self.quote.rates if self.quote else None,
            )
        )

    def record(self, status: str, counts: Counts) -> UsageEvent:
        """The usage event of this request ended now, as `status`."""
        quote = self.quote
        sources = self.meter.sources
        if counts.source != "reported" and sources[0] != sources[1]:
            self.event.labels["usage"] = f"input {sources[0]}, output {sources[1]}"
        record = msgspec.structs.replace(
            self.event,
            status=status,
            target=self.target.name,
            price=quote.version or None if quote else None,
            rates=quote.rates if quote else None,
            replica=self.replica.name,
            finish_reason=_recordable(self.finish_reason),
            input_tokens=counts.input_tokens,
            cached_input_tokens=counts.cached_input_tokens,
            output_tokens=counts.output_tokens,
            reasoning_tokens=counts.reasoning_tokens,
            usage_source=counts.source,
            finished_at=iso(time.time() * 1000),
            ttft_ms=self.ttft_ms,
            tpot_ms=self.tpot_ms(counts.output_tokens),
            upstream_id=self.attempt.rid if self.attempt else None,
        )
        return priced(record)

    def start_attempt(self) -> None:
        """The upstream is about to be asked: from here on it may be working for us."""
        self.opened = True
        self.attempt_at = self.last_event_at = time.monotonic()
        self.came_whole = False

    def start_answer(self, now: float) -> None:
        """The first byte: from here on nobody else may answer."""
        self.first_byte_at = now
        if self.on_first_byte is not None:
            self.on_first_byte()

    # --- going elsewhere ----------------------------------------------------------------------------------------------
    def record_at(self, choice: Choice) -> tuple[UsageEvent, Progress]:
        """Its record and progress as they begin, if its next attempt is at `choice`: what its hold keeps."""
        target, replica = choice.target.name, choice.replica.name
        quote = self.quotes.get(target)
        price, rates = (quote.version, quote.rates) if quote else (None, None)
        fallback = self.event.fallback + (1 if self.opened else 0)
        record = msgspec.structs.replace(
            self.event, target=target, replica=replica, price=price, rates=rates, fallback=fallback
        )
        return priced(record), Progress(target=target, replica=replica, price=price, rates=rates)

    def go_to(self, choice: Choice, *, prompt_estimate: int, max_tokens: int) -> None:
        """Its next attempt is at `choice`. Nothing of the last one counts any more."""
        self.event, _ = self.record_at(choice)
        self.choice, self.target, self.replica = choice, choice.target, choice.replica
        self.prompt_estimate, self.max_tokens = prompt_estimate, max_tokens
        self.meter = self._new_meter()
        self.left_out = frozenset()
        self.takes_no_stream = False
        self.attempt = self.attempt_at = self.last_byte_at = self.finish_reason = self.counted_prompt = None
        self.last_event_at = time.monotonic()

    def excuse(self, seconds: float) -> None:
        """Its process stood still for so long, which is neither its upstream's silence nor its client's."""
        now = time.monotonic()
        self.last_event_at = min(now, self.last_event_at + seconds)
        if self.attempt_at is not None:
            self.attempt_at = min(now, self.attempt_at + seconds)
        if self.sending_since is not None:
            self.sending_since = min(now, self.sending_since + seconds)

    # --- interrupting it ----------------------------------------------------------------------------------------------
    def interrupt(self, reason: Exception) -> None:
        """End it for `reason`: its task is cancelled and learns the reason. The first reason stands.

        One that is being settled cannot be interrupted: what it ended as is decided, and its client still hears it.
        """
        if self.interruption is None and not self.is_ending:
            self.interruption, self.left_at = reason, time.monotonic()
            if self.task is not None:
                self.task.cancel()
            if isinstance(reason, ClientLeft):
                for copy in self.copies:
                    copy.interrupt(reason)

    def expire(self, reason: TimedOut) -> None:
        """End its attempt for `reason`; whoever runs its attempts decides whether another follows."""
        if self.interruption is None and self.expiry is None and not self.is_ending and self.task is not None:
            self.expiry = reason
            self.task.cancel()


def _recordable(reason: str | None) -> str | None:
    """An upstream's finish reason as the ledger takes it: it may send anything."""
    return reason[:64] if reason and reason.isprintable() else None
