"""Retries are a tenth of the traffic, and a few whatever the traffic."""

from routing.retry_budget import RetryBudget


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def taken(budget: RetryBudget, model: str = "m", tries: int = 1000) -> int:
    return sum(budget.take(model) for _ in range(tries))


def test_it_gives_a_few_to_a_quiet_model_and_a_tenth_to_a_busy_one() -> None:
    budget = RetryBudget(clock=Clock())
    assert taken(budget) == 10
    for _ in range(1000):
        budget.note_request("busy")
    assert taken(budget, "busy") == 100
    assert taken(budget, "other") == 10


def test_it_forgets_what_is_ten_seconds_old() -> None:
    clock = Clock()
    budget = RetryBudget(clock=clock)
    for _ in range(500):
        budget.note_request("m")
    assert taken(budget) == 50
    clock.now += 9
    assert taken(budget) == 0
    clock.now += 1
    assert taken(budget) == 10


def test_it_holds_to_its_share_while_an_outage_lasts() -> None:
    clock = Clock()
    budget = RetryBudget(clock=clock)
    retries = 0
    for _ in range(20_000):  # 200 a second for 100 s, each of which would be sent again
        clock.now += 0.005
        budget.note_request("m")
        retries += budget.take("m")
    assert 1900 <= retries <= 2200
