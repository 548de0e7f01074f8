"""What a budget holds and keeps where things go otherwise: failures, dearer targets, no max_tokens, deletion."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import redis

from billing.budgets import counters as budgets
from billing.ledger_check.registry import CHECKS
from billing.models import Budget
from headrace.gateway.tests.calling import Place
from headrace.stack import ports
from headrace_dev.testing.budgets import add_budget, counter, kept, on_record, wait_counted
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.world import at_rest, drained

UNIT = 10**9
PER_TOKEN = "1000000"  # a token of output costs one unit


@pytest.fixture(autouse=True)
def keeping() -> Iterator[None]:
    with kept():
        yield


def budget_of(place: Place, amount: object, name: str, **fields: object) -> tuple[Budget, str]:
    """A budget of a new key, and the key's text."""
    key, secret = place.world.add_key()
    budget = add_budget(place.world, amount, name, key=key.public_id, **fields)
    place.world.wait_followed()
    wait_counted(budget)
    return budget, secret


@pytest.fixture
def another() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


def test_it_holds_the_dearest_target_and_is_charged_the_one_that_served(
    place: Place, another: ScriptedUpstream, valkey: "redis.Redis"
) -> None:
    with ports.reserve() as holder:
        closed = f"http://127.0.0.1:{ports.number(holder)}"
    model = place.add_route([closed], [another.url])
    place.world.price(model=model, input="0", cached_input="0", output=PER_TOKEN)
    dear = place.world.price(model=model, target=f"{model.lower()}-1", input="0", cached_input="0", output="3000000")
    budget, secret = budget_of(place, 59, "dearest")
    answer = place.chat(secret=secret, model=model, max_tokens=20)
    assert (answer.status, answer.error["code"]) == (402, "budget_exhausted")
    assert "may cost 60 USD" in answer.error["message"]
    assert "fits is 19." in answer.error["message"]
    answer = place.chat(secret=secret, model=model, max_tokens=19)
    assert (answer.status, answer.record["price"]) == (200, dear.version)
    at_rest(valkey)
    assert counter(valkey, budget).spent == 3 * 5 * UNIT
    answer = place.chat(secret=secret, model=model, max_tokens=7, n=2)
    assert answer.status == 200
    at_rest(valkey)
    drained(valkey)
    assert counter(valkey, budget).spent == 9 * 5 * UNIT == on_record(budget)


def test_what_is_refused_or_fails_costs_nothing(place: Place, valkey: "redis.Redis") -> None:
    place.world.price(input=PER_TOKEN, cached_input=PER_TOKEN, output=PER_TOKEN)
    budget, secret = budget_of(place, 10_000, "failing")
    cases: list[tuple[dict[str, Any], int]] = [
        ({"n": 0}, 400),
        ({"max_tokens": -1}, 400),
        ({"model": "nobody"}, 404),
        ({"temperature": "hot"}, 400),
        ({"content": prompt(status=500)}, 502),
        ({"content": prompt(status=503)}, 503),
    ]
    for fields, status in cases:
        body: dict[str, Any] = {"content": "Hello", "max_tokens": 5} | fields
        answer = place.chat(**body, secret=secret)
        assert answer.status == status, (fields, answer.status, answer.error)
    at_rest(valkey)
    drained(valkey)
    found = counter(valkey, budget)
    assert (found.spent, found.held, on_record(budget)) == (0, 0, 0)


def test_calls_without_max_tokens_pass_one_after_the_other_where_two_at_once_do_not(
    place: Place, valkey: "redis.Redis"
) -> None:
    """Without one it is the route's default, 1000, and comes back at the end of each."""
    place.world.price(input="0", cached_input="0", output=PER_TOKEN)
    budget, secret = budget_of(place, 1200, "one")
    for _ in range(30):
        assert place.chat(secret=secret).status == 200
        at_rest(valkey)
    assert counter(valkey, budget).spent == 30 * 5 * UNIT
    running = threading.Thread(target=partial(place.chat, prompt(first_ms=2500, tokens=5), secret=secret))
    running.start()
    time.sleep(0.8)
    answer = place.chat(secret=secret)
    assert (answer.status, answer.error["code"]) == (429, "budget_held")
    running.join()
    at_rest(valkey)
    assert place.chat(secret=secret).status == 200


@pytest.mark.parametrize(("amount", "asked"), [(40.5, 40), (400, 400), (1200, 1000)])
def test_a_max_tokens_that_nobody_named_is_cut_to_what_is_left(place: Place, amount: float, asked: int) -> None:
    """Of the tightest of several. One that the client named is refused: it is the client's to ask for less."""
    place.world.price(input="0", cached_input="0", output=PER_TOKEN)
    budget, secret = budget_of(place, amount, f"cut-{asked}")
    wider = add_budget(place.world, amount + 1, f"wider-{asked}", key=budget.key)
    place.world.wait_followed()
    wait_counted(wider)
    place.upstream.reset()
    answer = place.chat(secret=secret)
    assert answer.status == 200, answer.raw
    assert place.seen()["body"]["max_tokens"] == asked
    if asked < 1000:
        named = place.chat(secret=secret, max_tokens=asked + 1)
        assert (named.status, named.error["code"]) == (402, "budget_exhausted")


def test_a_max_tokens_that_nobody_named_is_not_cut_to_a_few_words(place: Place) -> None:
    place.world.price(input="0", cached_input="0", output=PER_TOKEN)
    _, secret = budget_of(place, 15, "few")
    answer = place.chat(secret=secret)
    assert (answer.status, answer.error["code"]) == (402, "budget_exhausted")
    assert "fits is 15." in answer.error["message"]


def test_it_may_be_deleted_while_requests_hold_from_it(place: Place, valkey: "redis.Redis") -> None:
    place.world.price(input="0", cached_input="0", output=PER_TOKEN)
    budget, secret = budget_of(place, 1000, "gone")
    other = add_budget(place.world, 10_000, "stays", project="app", period="total")
    place.world.wait_followed()
    wait_counted(other)
    before = counter(valkey, other).spent
    [part] = budgets.current([budget], datetime.now(UTC))
    answers = []
    slow = prompt(first_ms=2500, tokens=5)
    running = threading.Thread(target=lambda: answers.append(place.chat(slow, secret=secret, max_tokens=100)))
    running.start()
    time.sleep(0.8)
    assert counter(valkey, budget).held == 100 * UNIT
    budget.delete()
    valkey.delete(part.key)
    time.sleep(1)
    running.join()
    assert [answer.status for answer in answers] == [200]
    at_rest(valkey)
    assert not valkey.exists(part.key)
    assert counter(valkey, other).spent == before + 5 * UNIT
    assert CHECKS["budgets"].run(valkey).differences == []
