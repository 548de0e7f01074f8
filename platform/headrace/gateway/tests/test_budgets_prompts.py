"""Prompts of more tokens than they look like, many at once, at a provider that counts for nobody: within the budget."""

import base64
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from billing.models import Budget
from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.budgets import add_budget, counter, kept, on_record, wait_counted
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.world import at_rest, drained

UNIT = 10**9
# A token of each byte, such as of rare characters: the estimate is a quarter of it.
SIZE = 3000
DENSE = prompt("\u17d8" * (SIZE // 3), prompt_tokens=SIZE, tokens=1, first_ms=300)


@pytest.fixture(scope="module")
def hosted(sites: dict[str, Place]) -> str:
    """A provider's model; a token of its prompts costs a unit, output nothing."""
    place = next(iter(sites.values()))
    model = place.add_model(provider=True)
    place.world.price(model=model, input="1000000", cached_input="1000000", output="0")
    return model


@pytest.fixture(autouse=True)
def keeping() -> Iterator[None]:
    with kept():
        yield


def budget_of(sites: dict[str, Place], model: str, amount: int, name: str, **fields: object) -> tuple[Budget, str]:
    world = next(iter(sites.values())).world
    key, secret = world.add_key()
    budget = add_budget(world, amount, name, key=key.public_id, **fields)
    for site in sites.values():
        site.wait_known(model, secret=secret)
        eventually(lambda site=site: site.chat(secret=secret).status != 503)  # type: ignore[misc]
    wait_counted(budget)
    return budget, secret


def test_many_at_once_do_not_pass_a_hard_budget(sites: dict[str, Place], hosted: str, valkey: "redis.Redis") -> None:
    budget, secret = budget_of(sites, hosted, 50_000, "dense")
    places = list(sites.values())
    asked = 0
    with ThreadPoolExecutor(40) as threads:
        for _ in range(6):
            said = list(
                threads.map(lambda n: places[n % 2].chat(DENSE, secret=secret, model=hosted, max_tokens=1), range(40))
            )
            codes = Counter("ok" if one.status == 200 else one.error["code"] for one in said)
            assert set(codes) <= {"ok", "budget_held", "budget_exhausted", "redis_unavailable"}, codes
            asked += codes["ok"]
            if set(codes) == {"budget_exhausted"}:
                break
    at_rest(valkey)
    drained(valkey)
    found = counter(valkey, budget)
    assert found.held == 0
    assert found.spent == on_record(budget) == asked * SIZE * UNIT <= 50_000 * UNIT
    assert asked >= 10  # most of it is usable


def test_the_largest_max_tokens_is_named_beside_what_the_prompt_may_be(
    sites: dict[str, Place], hosted: str, valkey: "redis.Redis"
) -> None:
    place = next(iter(sites.values()))
    place.world.price(model=hosted, input="1000000", cached_input="1000000", output="1000000")
    _, secret = budget_of(sites, hosted, 10_000, "named")
    answer = place.chat(DENSE, secret=secret, model=hosted, max_tokens=9000)
    assert (answer.status, answer.error["code"]) == (402, "budget_exhausted")
    most = int(answer.error["message"].rpartition(" is ")[2].rstrip("."))
    assert 2000 < most < 10_000 - SIZE
    assert place.chat(DENSE, secret=secret, model=hosted, max_tokens=most + 1).status == 402
    assert place.chat(DENSE, secret=secret, model=hosted, max_tokens=most).status == 200


@pytest.mark.parametrize("beyond", [0, 1, 50_000])
def test_a_hard_budget_is_charged_no_more_of_a_prompt_than_it_held(
    sites: dict[str, Place], hosted: str, valkey: "redis.Redis", beyond: int
) -> None:
    """Whatever the upstream says: what it held is the most that the prompt can be."""
    place = next(iter(sites.values()))
    model = place.add_model(provider=True)
    place.world.price(model=model, input="1000000", cached_input="1000000", output="0")
    budget, secret = budget_of(sites, model, 100_000, f"beyond-{beyond}")

    def ask(**script: int) -> tuple[Answer, int]:
        with ThreadPoolExecutor(1) as threads:
            slow = prompt(tokens=1, first_ms=800, **script)
            asked = threads.submit(place.chat, slow, secret=secret, model=model, max_tokens=1)
            eventually(lambda: counter(valkey, budget).held > 0)
            held = counter(valkey, budget).held
            return asked.result(), held // UNIT

    _, held = ask(prompt_tokens=2000 + beyond)  # as many digits, which are prompt too
    before = counter(valkey, budget).spent
    answer, again = ask(prompt_tokens=held + beyond)
    at_rest(valkey)
    assert held == again > 2000
    assert answer.record["usage_source"] == ("estimated" if beyond else "reported")
    spent = (counter(valkey, budget).spent - before) // UNIT
    assert spent == answer.record["input_tokens"] <= held
    assert (spent == held) == (beyond == 0)


def test_a_prompt_that_was_counted_for_a_hard_budget_is_charged_as_counted(
    sites: dict[str, Place], valkey: "redis.Redis"
) -> None:
    """Little is left of it: the engine has counted the prompt before it was admitted, and says more afterwards."""
    place = next(iter(sites.values()))
    model = place.add_model()
    place.world.price(model=model, input="1000000", cached_input="1000000", output="0")
    budget, secret = budget_of(sites, model, 100, "counted")
    answer = place.chat(prompt(tokens=1, prompt_tokens=5000), secret=secret, model=model, max_tokens=1)
    assert answer.status == 200
    at_rest(valkey)
    assert answer.record["usage_source"] == "counted"
    assert 0 < counter(valkey, budget).spent == answer.record["input_tokens"] * UNIT < 100 * UNIT


def test_without_a_hard_budget_an_upstream_is_believed_as_much_as_its_context_takes(
    sites: dict[str, Place], hosted: str
) -> None:
    place = next(iter(sites.values()))
    answer = place.chat(prompt(tokens=1, prompt_tokens=50_000), model=hosted, max_tokens=1)
    assert (answer.record["input_tokens"], answer.record["usage_source"]) == (50_000, "reported")


def test_a_soft_budget_holds_what_the_prompt_is_estimated_at(
    sites: dict[str, Place], hosted: str, valkey: "redis.Redis"
) -> None:
    budget, secret = budget_of(sites, hosted, 10_000, "soft", hard=False)
    place = next(iter(sites.values()))
    with ThreadPoolExecutor(1) as threads:
        slow = prompt("x" * SIZE, prompt_tokens=900, tokens=1, first_ms=1500)
        asked = threads.submit(place.chat, slow, secret=secret, model=hosted, max_tokens=1)
        eventually(lambda: counter(valkey, budget).held > 0)
        assert counter(valkey, budget).held < (SIZE + 1000) * UNIT
        assert asked.result().status == 200
    at_rest(valkey)


def test_a_picture_is_held_by_its_size_not_by_its_bytes(
    sites: dict[str, Place], hosted: str, valkey: "redis.Redis"
) -> None:
    """Two megabytes of base64 in a budget for 5,000 tokens."""
    place = next(iter(sites.values()))
    budget, secret = budget_of(sites, hosted, 5000, "picture")
    url = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + bytes(1_500_000)).decode()
    picture = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    answer = place.chat(picture, secret=secret, model=hosted, max_tokens=5)
    assert answer.status == 200, answer.error
    at_rest(valkey)
    assert 0 < counter(valkey, budget).spent < 5000 * UNIT
