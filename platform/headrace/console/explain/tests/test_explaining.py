"""`manage.py routes explain` says what the web processes would do, and why."""

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from django.conf import settings
from django.core.management import CommandError, call_command

from engines.models import Pool, Replica
from headrace.console.explain.explaining import Question, operation_of
from headrace.gateway.process import metrics
from headrace.gateway.process.quarantine import KEY as BREAKS
from routing.attention_load import KEY, AttentionLoad, SharedAttentionLoad
from routing.breaker import CLOSED, OPEN
from routing.models import Model, Route, Target
from routing.quarantine import Quarantine
from tenants import keys
from tenants.meters.meter import room_key
from tenants.models import ApiKey, Project, Tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def route() -> Route:
    big, small = (Pool.objects.create(name=name, engine="sglang", model="m") for name in ("big", "small"))
    for number in range(2):
        Replica.objects.create(pool=big, name=f"r{number}", url=f"http://10.0.0.{number + 1}:30000")
    Replica.objects.create(pool=small, name="r0", url="http://10.0.1.1:30000")
    route = Route.objects.create(model=Model.objects.create(name="chat", context_window=100_000))
    Target.objects.create(route=route, position=0, pool=big, conditions={"min_prompt_tokens": 1000})
    Target.objects.create(route=route, position=1, pool=small)
    return route


def explained(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command("routes", "explain", "chat", *words, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_it_names_the_condition_that_failed(route: Route) -> None:
    found = explained("--tenant", "acme", "--prompt-tokens", "20", "--max-tokens", "10")
    assert [target["verdict"] for target in found["targets"]] == ["no: min_prompt_tokens=1000: it has 20", "yes"]
    assert found["goes_to"] == "small/r0"
    assert (found["request"]["tenant"], found["policy"]) == ("acme", "prefix_aware")


def test_it_passes_over_a_target_that_the_request_does_not_fit(route: Route) -> None:
    Target.objects.filter(position=0).update(context_window=4000)
    found = explained("--prompt-tokens", "3900", "--max-tokens", "200")
    assert [target["verdict"] for target in found["targets"]] == ["no: context window 4000: it takes 4100", "yes"]
    assert found["goes_to"] == "small/r0"
    found = explained("--prompt-tokens", "3900")  # what it does not ask for is bounded by what is left
    assert found["goes_to"].startswith("big/")


def test_it_shows_what_each_replica_holds_and_scores(route: Route) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.set(room_key("big/r0"), 50_000)
    found = explained("--prompt-tokens", "5000")
    assert found["goes_to"] == "big/r1"
    first, second = found["targets"][0]["replicas"]
    assert [(one["replica"], one["load"]) for one in (first, second)] == [("big/r1", 0), ("big/r0", 50_000)]
    assert first["score"] > second["score"]
    assert second["is_over"]


async def _goes_there(replica: str, work: AttentionLoad) -> None:
    client, process = redis.asyncio.Redis.from_url(settings.REDIS_URL), SharedAttentionLoad()
    process.enter(replica, work)
    await process.refresh(client)
    await client.aclose()


def test_it_counts_what_web_processes_have_replicas_do(route: Route) -> None:
    asyncio.run(_goes_there("big/r0", AttentionLoad(40_000, 300)))
    try:
        rows = explained("--prompt-tokens", "5000")["targets"][0]["replicas"]
    finally:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.delete(KEY)
    assert [(one["replica"], one["found"], one["unread"]) for one in rows] == [
        ("big/r1", 0, 0),
        ("big/r0", 40_000, 300),
    ]


def test_it_leaves_alone_what_a_breaker_of_a_web_process_leaves_alone(route: Route) -> None:
    metrics.tell_breaker("big/r0", OPEN)
    try:
        found = explained("--prompt-tokens", "2000")
        assert {row["replica"]: row["breaker"] for row in found["targets"][0]["replicas"]} == {
            "big/r0": "open",
            "big/r1": "closed",
        }
        assert found["goes_to"] == "big/r1"
    finally:
        metrics.tell_breaker("big/r0", CLOSED)


def make_key(**fields: Any) -> ApiKey:
    tenant = Tenant.objects.create(slug="acme", name="Acme", output_tokens_per_minute=900)
    project = Project.objects.create(tenant=tenant, slug="app", name="App")
    minted = keys.mint()
    return ApiKey.objects.create(
        public_id=minted.public_id, digest=minted.digest, hint=minted.hint, name="k", tenant=tenant, project=project,
        **fields,
    )  # fmt: skip


def test_it_knows_the_limits_above_a_key(route: Route) -> None:
    key = make_key(max_output_tokens=300)
    found = explained("--key", key.public_id, "--prompt-tokens", "20")
    assert (found["request"]["tenant"], found["request"]["max_tokens"]) == ("acme", 300)
    found = explained("--key", key.public_id, "--prompt-tokens", "20", "--max-tokens", "301")
    assert (found["goes_to"], found["rejection"]) == (None, "max_tokens is 301; this key may ask for 300.")
    assert explained("--tenant", "acme", "--project", "app")["request"]["max_tokens"] == 900
    ApiKey.objects.update(models=["other"])
    assert "may not call it" in explained("--key", key.public_id)["rejection"]
    with pytest.raises(CommandError, match="no key nothing"):
        explained("--key", "nothing")
    with pytest.raises(CommandError, match="not one of globex"):
        explained("--key", key.public_id, "--tenant", "globex")


def test_it_says_why_a_replica_is_left_out(route: Route) -> None:
    metrics.tell_breaker("big/r0", OPEN)
    try:
        rows = explained("--prompt-tokens", "2000")["targets"][0]["replicas"]
    finally:
        metrics.tell_breaker("big/r0", CLOSED)
    assert {row["replica"]: row["left_out"] for row in rows} == {"big/r1": None, "big/r0": "its breaker is open"}


def test_it_refuses_a_quarantined_prompt(route: Route, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "a query of death"}]')
    words = ("--tenant", "acme", "--messages", str(file))
    chat = operation_of(Question("chat", "acme", body=file.read_bytes()))
    digest = Quarantine(settings.SECRET_KEY).digest("acme", "chat", chat.prompt_text())
    event: dict[Any, Any] = {"digest": digest, "tenant": "acme", "model": "chat", "origin": "another process"}
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.xadd(BREAKS, event | {"replica": "big/r0"})
        assert explained(*words)["rejection"] is None
        client.xadd(BREAKS, event | {"replica": "big/r1"})
        found = explained(*words)
        client.delete(BREAKS)
    assert found["goes_to"] is None
    assert "Engines broke down at this prompt" in found["rejection"]


def test_it_reads_a_chat_from_a_file(route: Route, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "water " * 1000}]))
    out = StringIO()
    call_command("routes", "explain", "chat", "--messages", str(file), stdout=out)
    assert "1. big: yes" in out.getvalue()
    assert "-> big/r" in out.getvalue()


def test_it_says_what_it_cannot_explain(route: Route, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no model none"):
        call_command("routes", "explain", "none")
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    with pytest.raises(CommandError, match="not JSON"):
        call_command("routes", "explain", "chat", "--messages", str(bad))
