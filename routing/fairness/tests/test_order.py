"""Nobody starves: equal tenants get equal service, classes are strict but for a share, and absence saves nothing up."""

from collections import Counter

from routing.fairness.order import SHARE, FairOrder


def serve(order: FairOrder, rounds: int) -> Counter[str]:
    """Grant so many turns; how many went to each name (the first word of a request's id)."""
    got: Counter[str] = Counter()
    for _ in range(rounds):
        if not (turns := order.turns()):
            break
        order.granted(turns[0])
        got[turns[0].split()[0]] += 1
    return got


def fill(order: FairOrder, name: str, count: int, cost: float = 100, priority: str = "standard") -> None:
    for number in range(count):
        order.join(f"{name} {number}", tenant=name, priority=priority, cost=cost)


def test_equal_tenants_get_equal_service_whatever_they_ask_for() -> None:
    order = FairOrder()
    fill(order, "acme", 1000)
    fill(order, "globex", 100)
    assert serve(order, 200) == {"acme": 100, "globex": 100}


def test_service_counts_in_tokens_not_in_requests() -> None:
    order = FairOrder()
    fill(order, "acme", 500, cost=100)
    fill(order, "globex", 500, cost=400)
    got = serve(order, 250)
    assert got == {"acme": 200, "globex": 50}


def test_a_tenant_that_comes_back_has_saved_nothing_up() -> None:
    order = FairOrder()
    fill(order, "acme", 1000)
    serve(order, 500)
    fill(order, "globex", 500)
    assert serve(order, 100) == {"acme": 50, "globex": 50}


def test_a_higher_class_goes_first_and_a_lower_one_gets_its_share() -> None:
    order = FairOrder()
    fill(order, "batch", 100, priority="batch")
    fill(order, "fast", 100, priority="interactive")
    got = serve(order, 100)
    assert got["fast"] > got["batch"]
    assert abs(got["batch"] - 100 * SHARE / (1 + SHARE)) <= 1
    assert serve(order, 1000) == {"fast": 100 - got["fast"], "batch": 100 - got["batch"]}


def test_what_was_not_used_is_given_back_to_the_tenant() -> None:
    order = FairOrder()
    fill(order, "acme", 100, cost=1000)
    fill(order, "globex", 100, cost=100)
    for _ in range(100):
        turn = order.turns()[0]
        order.granted(turn)
        if turn.startswith("acme"):
            order.served("acme", "standard", -900)  # it used a tenth of its worst case
    assert abs(len([n for n in range(100) if f"acme {n}" in order._waiters]) - 50) <= 5


def test_leaving_leaves_nothing() -> None:
    order = FairOrder()
    fill(order, "acme", 3)
    order.leave("acme 0")
    order.leave("acme 0")
    assert order.turns() == ["acme 1"]
    order.leave("acme 1")
    order.leave("acme 2")
    assert (order.turns(), len(order)) == ([], 0)


def test_a_tenants_projects_share_by_weight_and_its_own_share_stays() -> None:
    order = FairOrder()
    for number in range(400):
        for project, weight in (("big", 3.0), ("small", 1.0)):
            order.join(
                f"{project} {number}",
                tenant="acme",
                priority="standard",
                cost=100,
                project=project,
                project_weight=weight,
            )
    fill(order, "globex", 400)
    got = serve(order, 400)
    assert got["globex"] == 200
    assert abs(got["big"] - 150) <= 1
    assert got["big"] + got["small"] == 200


def test_a_project_that_comes_back_has_saved_nothing_up() -> None:
    order = FairOrder()
    for number in range(200):
        order.join(f"busy {number}", tenant="acme", priority="standard", cost=100, project="busy")
    serve(order, 100)
    for number in range(100):
        order.join(f"late {number}", tenant="acme", priority="standard", cost=100, project="late")
    assert serve(order, 50) == {"busy": 25, "late": 25}
