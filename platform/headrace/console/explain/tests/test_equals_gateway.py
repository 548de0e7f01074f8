"""`manage.py routes explain --json` names what the gateway chooses, for any route, key, load and request."""

import asyncio
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from hypothesis import HealthCheck, Phase, assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from engines.load.figures import KEY, Fleet, Load, Report, State, encode
from engines.models import Pool, Replica
from headrace.gateway.admission.places import first_places
from headrace.gateway.admission.ranking import check_unknown, find_route
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.errors import ApiError
from headrace.gateway.process.snapshot import Snapshot
from headrace.gateway.web_process import Gateway
from routing.models import Model, Route, Target
from tenants import keys
from tenants.meters.meter import room_key
from tenants.models import ApiKey, ModelLimits, Project, Tenant

pytestmark = pytest.mark.django_db(transaction=True)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from((None, *values))


REPLICAS = st.fixed_dictionaries(
    {
        "state": some(*State),
        "held": st.sampled_from([0, 500, 5_000, 50_000]),
        "capacity": some(4_000, 40_000),
        "kv_used": some(0.2, 0.95),
        "lacks": st.sampled_from([(), ("image",)]),
        "is_broken": st.sampled_from([False, False, False, True]),
    }
)
TERMS = st.sampled_from([{}, {}, {"weight": 3}, {"canary": 50.0}, {"shadow": 50.0}])
CONDITIONS = st.sampled_from(
    [{}, {}, {"max_output_tokens": 300}, {"min_prompt_tokens": 200}, {"tools": True}, {"modalities": ["text"]}]
)
TARGETS = st.fixed_dictionaries(
    {
        "engine": st.sampled_from(["sglang", "vllm", "llamacpp"]),
        "modalities": st.sampled_from([[], ["text"], ["text", "image"]]),
        "context_window": some(300, 2_000),
        "conditions": CONDITIONS,
        "terms": TERMS,
        "replicas": st.lists(REPLICAS, max_size=3),
    }
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_prompt_tokens": st.sampled_from([100, 1_000]),
        "max_output_tokens": st.sampled_from([50, 250, 2_000]),
        "output_tokens_per_minute": st.sampled_from([100, 1_000]),
    },
)
REQUESTS = st.fixed_dictionaries(
    {
        "words": st.sampled_from([1, 150, 900]),
        "n": st.sampled_from([1, 1, 3]),
        "max_tokens": some(10, 260, 1_500),
        "has_image": st.booleans(),
        "has_tools": st.booleans(),
    }
)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@transaction.atomic
def make_route(name: str, targets: list[dict[str, Any]], policy: str) -> dict[str, dict[str, Any]]:
    """The drawn replicas by name. Ties fall by the last 16 letters of a name, which are the same in each run."""
    model = Model.objects.create(name=name, context_window=4_000, default_max_tokens=400)
    route = Route.objects.create(model=model, policy=policy)
    made = {}
    for position, drawn in enumerate(targets):
        pool = Pool.objects.create(
            name=f"{name}-in-this-place-{position}", engine=drawn["engine"], model="m", modalities=drawn["modalities"]
        )
        for number, replica in enumerate(drawn["replicas"]):
            url = f"http://127.0.0.1:1/{name}/{position}/{number}"
            made[f"{Replica.objects.create(pool=pool, name=f'r{number}', url=url)}"] = {
                **replica,
                "held": replica["held"] + 13 * number,  # least_loaded draws lots among equals
            }
        Target.objects.create(
            route=route, position=position, pool=pool, conditions=drawn["conditions"],
            context_window=drawn["context_window"], **drawn["terms"],
        )  # fmt: skip
    return made


@transaction.atomic
def make_key(name: str, limits: list[dict[str, int]], model_limits: dict[str, int]) -> ApiKey:
    of_key, of_project, of_tenant = limits
    tenant = Tenant.objects.create(slug=name, name=name, **of_tenant)
    project = Project.objects.create(tenant=tenant, slug="app", name="App", **of_project)
    if model_limits:
        ModelLimits.objects.create(tenant=tenant, model=name, **model_limits)
    minted = keys.mint()
    return ApiKey.objects.create(
        public_id=minted.public_id, digest=minted.digest, hint=minted.hint, name="k", tenant=tenant, project=project,
        **of_key,
    )  # fmt: skip


def chat_of(model: str, drawn: dict[str, Any]) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": "water " * drawn["words"]}, *([IMAGE] if drawn["has_image"] else [])]
    chat = {"model": model, "messages": [{"role": "user", "content": content}], "n": drawn["n"]}
    chat |= {"tools": [TOOL]} if drawn["has_tools"] else {}
    return chat | ({"max_tokens": drawn["max_tokens"]} if drawn["max_tokens"] else {})


def tell_loads(client: "redis.Redis", replicas: dict[str, dict[str, Any]]) -> None:
    """As web processes and the collector tell them."""
    at = time.time_ns() // 1_000_000
    reports = {}
    for name, drawn in replicas.items():
        client.set(room_key(name), drawn["held"])
        if drawn["state"] is not None:
            load = Load(kv_used=drawn["kv_used"], kv_capacity=drawn["capacity"])
            reports[name] = Report(drawn["state"], at=at, load=load, lacks=drawn["lacks"])
    client.set(KEY, encode(Fleet(at, reports)))


async def load_snapshot() -> Snapshot:
    snapshot = Snapshot(settings.DATABASE_URL)
    following = asyncio.create_task(snapshot.follow())
    await asyncio.wait_for(snapshot.ready.wait(), 10)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    return snapshot


async def choose(model: str, digest: bytes, body: bytes, broken: list[str]) -> tuple[list[str], str | None, bool]:
    """The gateway's places, the message it refuses with instead, and whether it explored."""
    gateway = Gateway()
    try:
        gateway.snapshot = await load_snapshot()
        await gateway.load.refresh()
        await gateway.placement.held.refresh(gateway.redis, gateway.snapshot.catalog.replica_names)
        for name in broken:
            passed = gateway.breakers.enter(f"{name} m")
            assert passed is not None
            passed.failed(pause=60)
        principal = gateway.snapshot.keys.find(digest)
        assert principal is not None
        operation = parse(body, settings.MEDIA_HOSTS)
        route = find_route(gateway.snapshot.catalog, principal, model)
        check_unknown(operation, route)
        found = first_places(gateway, principal.for_model(model), operation, route)
        return [one.replica.name for one, _ in found], None, any(one.ranked.is_explored for one, _ in found)
    except ApiError as error:
        return [], error.message, False
    finally:
        await gateway.client.close()
        await gateway.redis.aclose()


@hypothesis_settings(max_examples=25, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    targets=st.lists(TARGETS, max_size=3),
    policy=st.sampled_from(["prefix_aware", "least_loaded"]),
    limits=st.lists(LIMITS, min_size=3, max_size=3),
    model_limits=LIMITS,
    request=REQUESTS,
)
def test_explain_names_the_places_that_the_gateway_chooses(
    runner: asyncio.Runner,
    tmp_path: Path,
    targets: list[dict[str, Any]],
    policy: str,
    limits: list[dict[str, int]],
    model_limits: dict[str, int],
    request: dict[str, Any],
) -> None:
    name = f"e{secrets.token_hex(5)}"
    replicas, key = make_route(name, targets, policy), make_key(name, limits, model_limits)
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(chat_of(name, request)))
    broken = [each for each, drawn in replicas.items() if drawn["is_broken"]]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        tell_loads(client, replicas)
        try:
            chosen, refusal, is_explored = runner.run(choose(name, bytes(key.digest), file.read_bytes(), broken))
            assume(not is_explored)
            out = StringIO()
            words = ("--key", key.public_id, "--messages", str(file), "--json")
            call_command("routes", "explain", name, *words, stdout=out)
        finally:
            client.delete(KEY, *map(room_key, replicas))
    found = json.loads(out.getvalue())
    assert (found["places"], found["rejection"]) == (chosen, refusal)
