"""Retries are a tenth of a tenant's traffic, and a few whatever its traffic; of all its tenants', a few more."""

from routing.retry_budget import FLOOR_OF_ALL, RetryBudget


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def taken(budget: RetryBudget, model: str = "m", tenant: str = "acme", tries: int = 1000) -> int:
    return sum(budget.take(model, tenant) for _ in range(tries))


def ask(budget: RetryBudget, count: int, model: str = "m", tenant: str = "acme") -> None:
    for _ in range(count):
        budget.note_request(model, tenant)


def test_it_gives_a_few_to_a_quiet_model_and_a_tenth_to_a_busy_one() -> None:
    budget = RetryBudget(clock=Clock())
    assert taken(budget) == 10
    ask(budget, 1000, "busy")
    assert taken(budget, "busy") == 100
    assert taken(budget, "other") == 10


def test_a_failing_tenant_spends_nobody_elses_retries() -> None:
    budget = RetryBudget(clock=Clock())
    ask(budget, 1000)
    ask(budget, 200, tenant="globex")
    assert taken(budget) == 100
    assert taken(budget, tenant="globex") == 20
    assert taken(budget, tenant="quiet") == 10


def test_many_quiet_tenants_get_a_few_together() -> None:
    budget = RetryBudget(clock=Clock())
    for number in range(500):
        ask(budget, 1, tenant=f"t{number}")
    assert sum(taken(budget, tenant=f"t{number}", tries=3) for number in range(500)) == max(FLOOR_OF_ALL, 50)


def test_share_of_nothing_is_no_retry() -> None:
    budget = RetryBudget(share=0, clock=Clock())
    ask(budget, 1000)
    assert taken(budget) == 0


def test_it_forgets_what_is_ten_seconds_old() -> None:
    clock = Clock()
    budget = RetryBudget(clock=clock)
    ask(budget, 500)
    assert taken(budget) == 50
    clock.now += 9
    assert taken(budget) == 0
    clock.now += 1
    assert taken(budget) == 10


def test_tenants_that_ask_no_more_are_forgotten() -> None:
    clock = Clock()
    budget = RetryBudget(clock=clock)
    for number in range(500):
        ask(budget, 1, tenant=f"t{number}")
    clock.now += 10
    ask(budget, 1)
    assert set(budget._tenants) == {("m", "acme")}


def test_it_holds_to_its_share_while_an_outage_lasts() -> None:
    clock = Clock()
    budget = RetryBudget(clock=clock)
    retries = 0
    for _ in range(20_000):  # 200 a second for 100 s, each of which would be sent again
        clock.now += 0.005
        budget.note_request("m", "acme")
        retries += budget.take("m", "acme")
    assert 1900 <= retries <= 2200
