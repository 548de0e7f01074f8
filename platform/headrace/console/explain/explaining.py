"""Why a request goes where: the same matching and ranking as a web process does, from the same Redis.

It knows what replicas hold, what the collector tells of them, and the breakers of the web processes of its home. It
does not know the prefix indexes: they live in the web processes, which it asks nothing, so that overlaps are 0 here.
What was predicted of real requests and what their engines found are in `headrace_prefix_tokens_total`.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import psycopg
import redis
import redis.asyncio
from django.conf import settings

from engines.load.picture import Picture
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.operations.chat import ChatOperation
from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.process import metrics
from headrace.gateway.process.engine_readings import Readings
from headrace.gateway.process.snapshot import Snapshot
from routing.attention_load import SharedAttentionLoad
from routing.breaker import OPEN
from routing.catalog import Route, Target
from routing.conditions import Facts
from routing.held_tokens import HeldTokens
from routing.policies import POLICIES, Ask, PrefixAware, Weights
from routing.prefix_index import Hasher, PrefixIndex
from routing.selection import PlacementRequest, Selection
from tenants.meters.meter import room_key

# Ranked without its one in a hundred that explores: what is explained is the rule.
_STILL = PrefixAware(Weights(explore=0))
_BREAKERS = ("closed", "trying", "open")


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


class Explanation(msgspec.Struct, frozen=True):
    request: dict[str, Any]
    policy: str
    targets: list[dict[str, Any]]
    goes_to: str | None

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


async def explain(question: Question) -> Explanation:
    """Raises Unexplained, ApiError (the chat is none that would be taken)."""
    try:
        catalog = await Snapshot(settings.DATABASE_URL).read_catalog()
    except (psycopg.Error, OSError) as error:
        raise Unexplained(f"the database does not answer: {error}") from error
    route = catalog.routes.get(question.model)
    if route is None:
        raise Unexplained(f"there is no model {question.model} with a route that is enabled")
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)
    held, work, picture = HeldTokens(room_key), SharedAttentionLoad(), Picture(client)
    try:
        await held.refresh(client, catalog.replica_names)
        await work.read(client)
        await picture.refresh()
    except redis.RedisError as error:
        raise Unexplained(f"Redis does not answer: {error}") from error
    finally:
        await client.aclose()
    index = PrefixIndex(tokens=settings.KV_TOKENS, most=settings.PREFIX_INDEX_ENTRIES)
    selection = Selection(index, held, Readings(picture), work=work, room_factor=settings.ROOM_FACTOR)
    chat = parse(_whole(question), settings.MEDIA_HOSTS) if question.body else None
    want, unfit = wanted(route, question, chat), _unfit(route, question, chat, selection)
    return told(route, want, selection, Readings(picture), unfit, metrics.breaker_states())


def _unfit(
    route: Route, question: Question, chat: ChatOperation | None, selection: Selection
) -> Callable[[Target, PlacementRequest], str | None]:
    """Why a target whose conditions hold cannot take the request, as admission/places.py has it; None where it can."""
    most = question.max_tokens
    if most is None and chat is not None:
        most = chat.max_tokens

    def unfit(target: Target, want: PlacementRequest) -> str | None:
        if not target.replicas:
            return "it has no replica"
        if lacked := selection.lacked_by_all(target, want.facts.modalities):
            return f"its model takes no {', '.join(sorted(lacked))}"
        protocol, window = target.replicas[0].upstream.protocol, target.window(route)
        if chat is not None:
            refused = "n" if chat.n > 1 and not protocol.many_choices else protocol.refused(chat.decisive)
            if refused is not None:
                return f"its engine does not support {refused}"
        output = min(route.default_max_tokens, max(1, window - want.prompt)) if most is None else most
        is_over = target.context_window is not None and want.prompt + output > target.context_window
        is_over = is_over or (most is not None and most >= window)
        return f"context window {window}: it takes {want.prompt + output}" if is_over else None

    return unfit


def wanted(route: Route, question: Question, chat: ChatOperation | None) -> PlacementRequest:
    """The request in routing's words."""
    prompt, output, modalities, tools, chain = (
        0,
        route.default_max_tokens,
        frozenset({"text"}),
        False,
        PlacementRequest(0).chain,
    )
    conversation = b""
    if chat is not None:
        prompt = Estimator().prompt_tokens(route.model, chat)
        output, modalities, tools = chat.max_tokens or output, chat.content.modalities, "tools" in chat.passed
        scope = "" if route.cache_scope == "shared" else question.tenant
        hasher = Hasher(settings.SECRET_KEY)
        chain = hasher.chain(chat.prompt_text(), scope)
        conversation = hasher.conversation(chat.opening(), question.tenant, question.key)
    prompt = prompt if question.prompt_tokens is None else question.prompt_tokens
    output = output if question.max_tokens is None else question.max_tokens
    facts = Facts(
        prompt=prompt,
        output=output,
        modalities=modalities,
        tools=tools,
        tenant=question.tenant,
        project=f"{question.tenant}/{question.project}" if question.project else "",
        key=question.key,
        tier=question.tier,
    )
    return PlacementRequest(prompt, output, chain, facts, conversation)


def _whole(question: Question) -> bytes:
    """The chat as a body; a file may hold the messages alone."""
    try:
        given = msgspec.json.decode(question.body)
    except msgspec.DecodeError as error:
        raise Unexplained(f"--messages: not JSON: {error}") from error
    fields = given if isinstance(given, dict) else {"messages": given}
    return msgspec.json.encode({**fields, "model": question.model})


def told(
    route: Route,
    want: PlacementRequest,
    selection: Selection,
    readings: Readings,
    unfit: Callable[[Target, PlacementRequest], str | None] = lambda target, want: None,
    breakers: Mapping[str, int] | None = None,
) -> Explanation:
    """`breakers`: their states by replica or provider, the worst of its models; closed where none is told."""
    breakers = breakers or {}
    matched = selection.match(route, want)
    targets = []
    for target, verdict in zip(route.targets, matched.verdicts, strict=True):
        if not verdict.startswith("no:") and (reason := unfit(target, want)) is not None:
            verdict = f"no: {reason}"
        takes = not verdict.startswith("no:")
        rows = _replicas(route, target, want, selection, readings) if takes else []
        rows = [row | {"breaker": _BREAKERS[breakers.get(row["replica"], 0)]} for row in rows]
        targets.append(
            {"target": target.name, "conditions": str(target.conditions), "verdict": verdict, "replicas": rows}
        )
    fitting = [one for one in matched.targets if unfit(one, want) is None]
    every = (replica for target in fitting for replica in target.replicas)
    left_alone = frozenset(each.key for each in every if breakers.get(each.name) == OPEN)
    choices = selection.choices_of(fitting, route, want, besides=left_alone)
    facts = want.facts
    request = {
        "model": route.model,
        "tenant": facts.tenant,
        "prompt_tokens": want.prompt,
        "max_tokens": facts.output,
        "modalities": sorted(facts.modalities),
        "tools": facts.tools,
        "tier": facts.tier,
    }
    return Explanation(request, route.policy, targets, choices[0].replica.name if choices else None)


def _replicas(
    route: Route, target: Target, want: PlacementRequest, selection: Selection, readings: Readings
) -> list[dict[str, Any]]:
    policy = _STILL if route.policy == PrefixAware.name else POLICIES[route.policy]
    candidates = {one.name: one for one in selection.candidates(target.replicas, want)}
    ranking = policy.rank(Ask(want.prompt, 0, want.chain.mark), list(candidates.values()), random.Random(0))
    ranked = {one.name: one for one in ranking}
    rows = []
    for name in [*ranked, *(name for name in candidates if name not in ranked)]:
        candidate, place = candidates[name], ranked.get(name)
        rows.append(
            {
                "replica": name,
                "state": readings.reading(name).state,
                "score": None if place is None else place.score,
                "credit": None if place is None else round(place.credit, 4),
                "relative_load": None if place is None else round(place.relative, 4),
                "pressure": None if place is None else round(place.pressure, 4),
                "is_over": place is not None and place.is_over,
                "overlap": candidate.overlap,
                "load": candidate.load,
                "found": candidate.found,
                "unread": candidate.unread,
                "need": candidate.need,
                "capacity": candidate.capacity,
                "kv_used": candidate.kv_used,
                "running": candidate.running,
                "waiting": candidate.waiting,
            }
        )
    return rows
