"""Why a request goes where: the gateway's own rule (routing/placement.py), asked with what a command can read.

That is the routes and the caller's limits from the database; from Redis what replicas hold, what the collector tells
of them, and the prompts that are quarantined; and the breakers of the web processes of its home. What only lives in a
web process it does not know: the prefix index (overlaps are 0 here; what was predicted of real requests and what their
engines found are in `headrace_prefix_tokens_total`), the bytes per token and lengths of answers that it learned, the
replicas that were silent to a tenant, and which tenant or model a breaker is open for (it counts for all).
"""

import msgspec
import psycopg
import redis
import redis.asyncio
from django.conf import settings

from engines.load.picture import Picture
from headrace.console.explain.answers import STEADY_POLICIES, BreakerStates, Explanation, answer
from headrace.console.explain.callers import UnknownCaller, read_principal
from headrace.gateway.admission.ranking import FleetView, check_unknown, find_route
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.errors import ApiError
from headrace.gateway.operations.chat import ChatOperation
from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.operations.operation import Operation
from headrace.gateway.process import metrics
from headrace.gateway.process.engine_readings import Readings
from headrace.gateway.process.quarantine import SharedQuarantine
from headrace.gateway.process.snapshot import Snapshot
from headrace.gateway.state.placement_request import placement_request
from routing.attention_load import SharedAttentionLoad
from routing.held_tokens import HeldTokens
from routing.prefix_index import Hasher, PrefixIndex
from routing.selection import Selection
from tenants.meters.meter import room_key

# Stands for a chat that is not given.
_MESSAGES = msgspec.Raw(b'[{"role":"user","content":""}]')
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Unexplained(Exception):
    """It cannot be said; the message tells why."""


class Question(msgspec.Struct, frozen=True):
    """A request as far as it matters. body: a chat's JSON, or none; its numbers are overridden by those given."""

    model: str
    tenant: str = ""
    project: str = ""
    key: str = ""
    tier: str = ""
    prompt_tokens: int | None = None
    max_tokens: int | None = None
    body: bytes = b""


class StatedPrompt(Estimator):
    """An estimator that is told how large the prompt is."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._tokens = tokens

    def prompt_tokens(self, tokenizer: str, operation: Operation) -> int:
        return self._tokens


async def explain(question: Question) -> Explanation:
    """Raises Unexplained, ApiError (the chat is none that would be taken)."""
    try:
        catalog = await Snapshot(settings.DATABASE_URL).read_catalog()
        principal = await read_principal(
            settings.DATABASE_URL, tenant=question.tenant, project=question.project, key=question.key
        )
    except UnknownCaller as error:
        raise Unexplained(str(error)) from error
    except (psycopg.Error, OSError) as error:
        raise Unexplained(f"the database does not answer: {error}") from error
    route = catalog.routes.get(question.model)
    if route is None:
        raise Unexplained(f"there is no model {question.model} with a route that is enabled")
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)
    held, work, picture = HeldTokens(room_key), SharedAttentionLoad(), Picture(client)
    quarantine = SharedQuarantine(settings.SECRET_KEY, client)
    try:
        await held.refresh(client, catalog.replica_names)
        await work.read(client)
        await picture.refresh()
        await quarantine.read()
    except redis.RedisError as error:
        raise Unexplained(f"Redis does not answer: {error}") from error
    finally:
        await client.aclose()
    operation, rejection = operation_of(question), None
    try:
        if not principal.is_valid():
            raise ApiError("invalid_api_key", "The API key is expired, or its tenant is suspended.")
        find_route(catalog, principal, question.model)
        check_unknown(operation, route)
        if question.body:
            quarantine.require_allowed(principal, operation)
    except ApiError as error:
        rejection = error
    principal = principal.for_model(question.model)
    states = metrics.breaker_states()
    estimator = estimator_of(question)
    index = PrefixIndex(tokens=settings.KV_TOKENS, most=settings.PREFIX_INDEX_ENTRIES)
    selection = Selection(
        index, held, Readings(picture), work=work, room_factor=settings.ROOM_FACTOR, policies=STEADY_POLICIES
    )
    want = placement_request(route, operation, principal, estimator=estimator, hasher=Hasher(settings.SECRET_KEY))
    if not question.body:  # its draws are by chance
        want = msgspec.structs.replace(want, conversation=b"")
    view = FleetView(estimator, selection, BreakerStates(states))
    return answer(view, principal, operation, route, want, states=states, rejection=rejection)


def estimator_of(question: Question) -> Estimator:
    """What sizes the prompt: the number given, else the chat."""
    if question.prompt_tokens is None and question.body:
        return Estimator()
    return StatedPrompt(question.prompt_tokens or 0)


def operation_of(question: Question) -> ChatOperation:
    """The chat as the gateway reads it; a file may hold the messages alone. Raises Unexplained, ApiError."""
    fields = {"messages": _MESSAGES}
    if question.body:
        try:
            given = msgspec.json.decode(question.body)
            # The client's own bytes: an estimate counts the spaces of a schema too.
            is_whole = isinstance(given, dict)
            fields = _raw_fields.decode(question.body) if is_whole else {"messages": msgspec.Raw(question.body)}
        except msgspec.DecodeError as error:
            raise Unexplained(f"--messages: not JSON: {error}") from error
    chat = parse(msgspec.json.encode({**fields, "model": question.model}), settings.MEDIA_HOSTS)
    chat.tier = question.tier
    if question.max_tokens is not None:
        chat.max_tokens = question.max_tokens
    return chat
