"""Routes by need: conditions decide where a request goes, shadows get copies that cost nobody anything."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis
from django.db import transaction

from billing.models import UsageRecord
from engines.models import Pool, Replica
from headrace.gateway.tests.calling import Answer, Place, records
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.world import at_rest, drained
from routing.models import Model, Route, Target


@pytest.fixture(scope="module")
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def other(place: Place, second: ScriptedUpstream) -> Pool:
    """A second pool, on an upstream of its own."""
    Replica.objects.filter(url=second.url).delete()
    pool = Pool.objects.create(name=f"{place.world.name}-b", engine="sglang", model="scripted")
    Replica.objects.create(pool=pool, name="r1", url=second.url)
    return pool


def routed(place: Place, name: str, *targets: dict[str, Any]) -> str:
    """A model of these targets, known to the web process."""
    with transaction.atomic():  # known with all its targets, or not at all
        model = Model.objects.create(name=f"{name}-{place.world.name}", context_window=100_000, default_max_tokens=50)
        route = Route.objects.create(model=model)
        for position, target in enumerate(targets):
            Target.objects.create(route=route, position=position, **target)
    place.wait_known(model.name)
    return model.name


def target_of(answer: Answer) -> str:
    return str(answer.headers["x-headrace-target"])


def test_it_goes_where_the_conditions_lead(place: Place, other: Pool) -> None:
    model = routed(
        place,
        "needs",
        {"pool": other, "conditions": {"min_prompt_tokens": 2000}},
        {"pool": other, "conditions": {"tiers": ["gold"], "tools": False}},
        {"pool": other, "conditions": {"tenants": ["nobody"]}},
        {"pool_id": place.world.name, "conditions": {"max_output_tokens": 100}},
    )
    assert target_of(place.chat("short", model=model)) == place.world.name
    assert target_of(place.chat("long " * 4000, model=model)) == other.name
    assert target_of(place.chat("short", model=model, headers={"x-headrace-tier": "gold"})) == other.name
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    answer = place.chat("short", model=model, headers={"x-headrace-tier": "gold"}, tools=tools)
    assert target_of(answer) == place.world.name
    refused = place.chat("short", model=model, max_tokens=101)
    assert (refused.status, refused.error["code"]) == (400, "invalid_request")


def test_it_copies_to_a_shadow_that_costs_nothing(place: Place, other: Pool, valkey: "redis.Redis") -> None:
    model = routed(place, "copied", {"pool": other, "shadow": 100}, {"pool_id": place.world.name})
    answers = [place.chat(f"Hello {number}", model=model, max_tokens=4, stream=number % 2 == 0) for number in range(4)]
    assert {target_of(answer) for answer in answers} == {place.world.name}
    found = _copies(place, answers)
    assert {copy["target"] for copy in found} == {other.name}
    assert {copy["status"] for copy in found} == {"ok"}
    assert {float(copy["cost"]) for copy in found} == {0}
    assert all(copy["output_tokens"] == 4 and copy["input_tokens"] > 0 for copy in found)
    assert not {copy["request_id"] for copy in found} & {answer.id for answer in answers}
    at_rest(valkey)
    drained(valkey)
    kinds = [row.kind for row in _ledger(model)]
    assert sorted(kinds) == ["chat"] * 4 + ["shadow"] * 4
    assert {row.cost for row in _ledger(model) if row.kind == "shadow"} == {0}


@pytest.mark.parametrize("script", [{"status": 500}, {"headers_only": True}, {"drop_after": 1}], ids=str)
def test_it_neither_waits_for_a_shadow_nor_fails_with_it(
    place: Place, second: ScriptedUpstream, other: Pool, valkey: "redis.Redis", script: dict[str, Any]
) -> None:
    shadow, real = {"pool": other, "shadow": 100}, {"pool_id": place.world.name}
    model = routed(place, f"apart-{next(iter(script))}", shadow, real)
    Route.objects.filter(model_id=model).update(total_timeout=2)
    place.world.wait_followed()
    second.script(**script)
    began = time.monotonic()
    answer = place.chat("plain", model=model, max_tokens=4)
    assert (answer.status, target_of(answer)) == (200, place.world.name)
    assert time.monotonic() - began < 2
    [copy] = _copies(place, [answer])
    assert copy["status"] in {"error", "cancelled"}
    assert float(copy["cost"]) == 0
    second.reset()
    at_rest(valkey)


def test_a_canary_keeps_the_conversations_it_drew(place: Place, other: Pool) -> None:
    model = routed(place, "canary", {"pool_id": place.world.name}, {"pool": other, "canary": 50})
    went = []
    for talk in range(12):
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
        targets = set()
        for turn in range(4):
            messages.append({"role": "user", "content": f"question {turn} of talk {talk} in {model}"})
            targets.add(target_of(place.chat(model=model, messages=messages)))
            messages.append({"role": "assistant", "content": "An answer."})
        assert len(targets) == 1
        went.append(targets.pop())
    assert set(went) == {place.world.name, other.name}


def test_a_copy_ends_when_the_client_of_its_original_leaves(
    place: Place, other: Pool, second: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    model = routed(place, "left", {"pool": other, "shadow": 100}, {"pool_id": place.world.name})
    body = place.body(prompt(tokens=1000, stall_after=2), model=model, stream=True)
    url, headers = f"{place.web.url}/v1/chat/completions", place.world.headers()
    with httpx.Client(trust_env=False) as client, client.stream("POST", url, json=body, headers=headers) as answer:
        chunks = answer.iter_raw()  # kept: what is collected closes the connection
        next(chunks)
        eventually(lambda: second.stats()["open"] == 1)
    second.wait_until_idle(5)
    eventually(lambda: len(records(place.web, model)) == 2)
    assert {one["kind"]: one["status"] for one in records(place.web, model)} == {
        "chat": "cancelled",
        "shadow": "cancelled",
    }
    at_rest(valkey)


def _copies(place: Place, answers: list[Answer]) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 10
    while True:
        found = [
            record
            for answer in answers
            for record in records(place.web, answer.id)
            if record["labels"].get("shadow_of") == answer.id
        ]
        if len(found) == len(answers):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def _ledger(model: str) -> list[UsageRecord]:
    return list(UsageRecord.objects.filter(model=model))
