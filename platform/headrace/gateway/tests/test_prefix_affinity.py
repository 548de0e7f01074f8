"""A prompt goes back to the replica that has its beginning; what is new goes to the least loaded."""

import secrets
import time
from collections.abc import Iterator

import pytest

from headrace.gateway.tests.fleet import Fleet, replicas_of, scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess

PREDICTED = {"class": "predicted"}


@pytest.fixture(scope="module")
def upstreams() -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(3) as upstreams:
        yield upstreams


@pytest.fixture(scope="module")
def fleet(committed: None, gateway: WebProcess, upstreams: list[ScriptedUpstream]) -> Fleet:
    return Fleet(gateway, upstreams)


def long_text(words: int = 2000) -> str:
    return f"{secrets.token_hex(8)} " + "water runs down the hill " * (words // 5)


def test_it_sends_a_growing_conversation_to_one_replica(fleet: Fleet) -> None:
    system, records = long_text(), []
    for turn in range(12):
        messages = [{"role": "system", "content": system}]
        for earlier in range(turn + 1):
            messages.append({"role": "user", "content": f"question {earlier}"})
        records.append(fleet.chat(messages=messages).record)
    assert len(replicas_of(records)) == 1
    assert sum(record["cached_input_tokens"] for record in records[1:]) > 8 * records[0]["input_tokens"]


def test_it_spreads_what_has_no_prefix(fleet: Fleet) -> None:
    fleet.went()
    for _ in range(30):
        fleet.chat(long_text(200))
    assert all(count >= 3 for count in fleet.went().values())


def test_it_does_not_send_another_tenant_after_it(fleet: Fleet) -> None:
    """Two tenants' equal prompts share no cache entries, so neither draws the other: the hashes are salted."""
    text = long_text()
    for _ in range(3):
        fleet.chat(text)
    world = fleet.world
    other = world.add_tenant(f"globex-{secrets.token_hex(2)}")
    project = world.project.__class__.objects.create(tenant=other, slug="app", name="App")
    _, secret = world.add_key(project)
    fleet.wait_known(world.model, secret=secret)
    first = fleet.chat(text, secret=secret).record
    assert first["cached_input_tokens"] == 0
    found = fleet.metric("headrace_prefix_tokens_total", model=world.model, **PREDICTED)
    again = fleet.chat(text, secret=secret)
    assert again.record["cached_input_tokens"] > 1000
    assert fleet.metric("headrace_prefix_tokens_total", model=world.model, **PREDICTED) > found + 1000


def test_it_tells_predicted_and_reported_hits_and_its_own_size(fleet: Fleet) -> None:
    where = {"model": fleet.world.model, "target": fleet.world.name}
    predicted = fleet.metric("headrace_prefix_tokens_total", **PREDICTED, **where)
    reported = fleet.metric("headrace_prefix_tokens_total", **{"class": "reported"}, **where)
    assert reported > 10_000
    assert 0.8 * reported < predicted < 1.1 * reported
    assert fleet.metric("headrace_prefix_index_entries") > 30
    assert fleet.metric("headrace_prefix_index_bytes") > 30 * 100


def test_it_finds_the_replica_from_another_process(
    committed: None, quick_webs: dict[str, WebProcess], upstreams: list[ScriptedUpstream]
) -> None:
    one, two = quick_webs.values()
    fleet = Fleet(one, upstreams)
    there = fleet.at(two)
    there.wait_known(fleet.world.model)
    found = 0
    for _ in range(20):
        text = long_text()
        first = fleet.chat(text).record["replica"]
        time.sleep(0.15)
        found += there.chat(text).record["replica"] == first
    assert found >= 18  # by chance it would be 7
