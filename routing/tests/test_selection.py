"""Which replica is chosen: of the first target that has one, the least busy, ties in turn."""

from collections import Counter

from engines.protocols import PROTOCOLS, Upstream
from routing.catalog import Replica, Route, Target
from routing.selection import InFlight


def target(name: str, replicas: int) -> Target:
    upstream = Upstream(PROTOCOLS["sglang"], "http://10.0.0.1:30000", "m")
    return Target(name, tuple(Replica(f"{name}/r{number}", upstream) for number in range(replicas)))


def route(*targets: Target) -> Route:
    return Route("chat", 0, 8192, 500, "tenant", "refuse", 5, 60, 60, 600, targets)


def chosen(in_flight: InFlight, of: Route, **besides: frozenset[str]) -> str:
    choice = in_flight.choose(of, **besides)
    assert choice is not None
    return choice[1].name


def test_it_takes_the_least_busy_replica() -> None:
    in_flight, where = InFlight(), route(target("a", 3))
    replicas = where.targets[0].replicas
    for replica, running in zip(replicas, (2, 1, 3), strict=True):
        for _ in range(running):
            in_flight.enter(replica)
    assert chosen(in_flight, where) == "a/r1"
    in_flight.enter(replicas[1])
    in_flight.leave(replicas[0])
    assert chosen(in_flight, where) == "a/r0"


def test_it_takes_turns_between_equals() -> None:
    in_flight, where = InFlight(), route(target("a", 3))
    assert Counter(chosen(in_flight, where) for _ in range(30)) == {"a/r0": 10, "a/r1": 10, "a/r2": 10}


def test_it_spreads_what_is_entered_evenly() -> None:
    in_flight, where = InFlight(), route(target("a", 4))
    taken: Counter[str] = Counter()
    for _ in range(20):
        choice = in_flight.choose(where)
        assert choice is not None
        in_flight.enter(choice[1])
        taken[choice[1].name] += 1
    assert set(taken.values()) == {5}


def test_it_takes_the_first_target_that_has_a_replica() -> None:
    in_flight = InFlight()
    where = route(target("empty", 0), target("a", 1), target("b", 1))
    for replica in where.targets[1].replicas * 5:
        in_flight.enter(replica)
    assert chosen(in_flight, where) == "a/r0"
    assert chosen(in_flight, where, besides=frozenset({"a/r0"})) == "b/r0"
    assert in_flight.choose(where, besides=frozenset({"a/r0", "b/r0"})) is None
    assert in_flight.choose(route()) is None


def test_it_forgets_a_replica_with_nothing_running() -> None:
    in_flight, where = InFlight(), route(target("a", 2))
    [one, two] = where.targets[0].replicas
    in_flight.enter(one)
    in_flight.leave(one)
    in_flight.leave(one)  # once too often is no credit
    in_flight.enter(two)
    assert chosen(in_flight, where) == "a/r0"
