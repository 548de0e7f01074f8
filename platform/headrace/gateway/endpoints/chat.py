"""POST /v1/chat/completions: authenticate, check, admit, answer, settle. The life of a request, in one screen."""

import asyncio
import logging
from typing import ClassVar

from django.conf import settings

from engines.errors import Incomplete, UpstreamError
from headrace.gateway.admission.admission import admit
from headrace.gateway.admission.authentication import authenticate
from headrace.gateway.admission.places import FALLBACK, fallback_of
from headrace.gateway.admission.queue_turn import PRIORITY, priority_of
from headrace.gateway.dialects.chat_completions.request import parse_by_turns
from headrace.gateway.dialects.chat_completions.upstream_errors import from_upstream
from headrace.gateway.errors import ApiError, lease_lost
from headrace.gateway.relay.attempts import answer_by_any, cause
from headrace.gateway.relay.consumer import StreamingConsumer
from headrace.gateway.relay.shadow import copy_to_shadows
from headrace.gateway.relay.streamed_answer import StreamedAnswer
from headrace.gateway.relay.whole_answer import WholeAnswer
from headrace.gateway.state.request_state import ClientLeft, RequestState
from headrace.gateway.web_process import Gateway
from tenants.keyring import Principal

log = logging.getLogger("headrace.gateway")


class ChatConsumer(StreamingConsumer):
    """One chat, streamed or whole."""

    methods: ClassVar[frozenset[str]] = frozenset({"POST"})

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._principal: Principal | None = None
        self._request: RequestState | None = None

    async def before_body(self) -> None:
        self.require_ready()
        self._principal = authenticate(self.scope["headers"], self.gateway.snapshot.keys)

    def note_refusal(self, code: str) -> None:
        if (who := self._principal) is not None:
            self.gateway.refusals.count(tenant=who.tenant, project=who.project, key=who.key, code=code)

    async def handle(self, body: bytes) -> None:
        assert self._principal is not None
        gateway = self.gateway
        chat = await parse_by_turns(body, settings.MEDIA_HOSTS, self._principal.tenant, gateway.large_bodies)
        chat.tier = self.header(b"x-headrace-tier")[:64].decode("ascii", "replace")
        chat.fallback = fallback_of(self.header(FALLBACK).decode("latin-1"))
        priority = priority_of(self._principal.priority, self.header(PRIORITY).decode("latin-1"))
        request = self._request = await admit(gateway, self._principal, chat, labels=self._labels(), priority=priority)
        request.task, request.is_watched = asyncio.current_task(), self.drop is not None
        self.request_id = request.id
        gateway.pulse.add(request)
        kind = StreamedAnswer if chat.stream else WholeAnswer
        answer = kind(self, gateway, request)
        try:  # from here on whatever goes wrong settles: the pulse would renew the hold for ever
            copy_to_shadows(gateway, request)
            await answer_by_any(gateway, request, answer)
        except BaseException as error:
            status, told = judge(request, error)
            counts = await gateway.settler.finish(request, status, before=answer.hang_up())
            if told is not None:
                told.was_billed = counts.output_tokens > 0
                await answer.fail(told)
            elif request.interruption is None:
                raise  # the server ends us, not the client
        else:
            counts = await gateway.settler.finish(request, "ok")
            if request.is_reaped and not chat.stream:
                # It is settled as one that got nothing, and its client may have asked again: nobody pays for this one.
                await answer.fail(lease_lost())
            else:
                await answer.complete(counts)

    def leave(self, work: "asyncio.Task[None]") -> None:
        if self._request is None:
            work.cancel()
        else:
            self._request.interrupt(ClientLeft())

    def _labels(self) -> dict[str, str]:
        """The client's own request id, bounded, as a label of the record."""
        sent = self.header(b"x-request-id")[:128].decode("ascii", "replace")
        return {"client_request_id": sent} if sent.isprintable() and sent else {}


def judge(request: RequestState, error: BaseException) -> tuple[str, ApiError | None]:
    """The status a failed request settles with, and what its client is told (None: nobody is there)."""
    if isinstance(error, asyncio.CancelledError):
        error = request.interruption or error
    if isinstance(error, UpstreamError):
        request.event.labels["error"] = cause(error)
    match error:
        case ClientLeft() | asyncio.CancelledError():
            return "cancelled", None
        case Incomplete():
            return "incomplete", from_upstream(error)
        case UpstreamError():
            return "error", from_upstream(error)
        case ApiError():
            request.event.labels["error"] = error.code
            return "error", error
        case _:
            log.error("request %s failed", request.id, exc_info=error)
            return "error", ApiError("internal_error", "Headrace failed on this request.")
