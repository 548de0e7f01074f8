"""Which replicas are chosen from: each target in order, ranked by the route's policy from what is known of them."""

import random
from collections import Counter

import msgspec

from engines.protocols import PROTOCOLS, Upstream
from routing.attention_load import AttentionLoad, SharedAttentionLoad
from routing.catalog import Replica, Route, Target
from routing.held_tokens import HeldTokens
from routing.prefix_index import Hasher, PrefixIndex
from routing.selection import PlacementRequest, Reading, Selection

CHAIN = Hasher("secret").chain(b"x" * 16_000, "acme")


class Watched:
    """A picture that was taken by hand."""

    def __init__(self, **readings: Reading) -> None:
        self._readings = readings

    def reading(self, replica: str) -> Reading:
        return self._readings.get(replica.partition("/")[2], Reading())


def target(name: str, replicas: int) -> Target:
    upstream = Upstream(PROTOCOLS["sglang"], "http://10.0.0.1:30000", "m")
    return Target(name, tuple(Replica(f"{name}/r{number}", upstream) for number in range(replicas)))


def route(*targets: Target, policy: str = "least_loaded") -> Route:
    return Route("chat", 0, 8192, 500, "tenant", "refuse", policy, 5, 60, 60, 600, targets)


def make(**readings: Reading) -> tuple[Selection, HeldTokens, PrefixIndex]:
    index, held = PrefixIndex(tokens=100_000, most=10_000), HeldTokens(str)
    return Selection(index, held, Watched(**readings), dice=random.Random(1)), held, index


def test_it_takes_the_replica_that_holds_least() -> None:
    selection, held, _ = make()
    for replica, tokens in {"a/r0": 200, "a/r1": 100, "a/r2": 300}.items():
        held.enter(replica, tokens)
    names = [choice.replica.name for choice in selection.choices(route(target("a", 3)), PlacementRequest(10))]
    assert names == ["a/r1", "a/r0", "a/r2"]
    held.leave("a/r0", 200)
    held.leave("a/r0", 200)  # once too often is no credit
    assert held.tokens("a/r0") == 0


def test_it_spreads_what_is_entered_evenly() -> None:
    selection, held, _ = make()
    taken: Counter[str] = Counter()
    for _ in range(20):
        choice = selection.choices(route(target("a", 4)), PlacementRequest(100, 50))[0]
        assert choice.need == 150
        held.enter(choice.replica.name, choice.need)
        taken[choice.replica.name] += 1
    assert set(taken.values()) == {5}


def test_it_ranks_the_targets_in_their_order() -> None:
    selection, held, _ = make()
    where = route(target("empty", 0), target("a", 1), target("b", 1))
    held.enter("a/r0", 10_000)
    assert [choice.target.name for choice in selection.choices(where, PlacementRequest(10))] == ["a", "b"]
    assert [c.target.name for c in selection.choices(where, PlacementRequest(10), besides=frozenset({"a/r0 m"}))] == [
        "b"
    ]
    assert selection.choices(route(), PlacementRequest(10)) == []


def test_it_finds_the_replica_with_the_prefix_by_the_routes_policy() -> None:
    selection, _, index = make()
    index.sent("a/r2", CHAIN, 4000, 1)
    where = route(target("a", 4), policy="prefix_aware")
    firsts = Counter(selection.choices(where, PlacementRequest(4000, 100, CHAIN))[0].replica.name for _ in range(50))
    assert firsts.most_common(1)[0][0] == "a/r2"
    choice = next(c for c in selection.choices(where, PlacementRequest(4000, 100, CHAIN)) if c.replica.name == "a/r2")
    assert choice.candidate.overlap > 3700
    assert choice.need == 4100 - choice.candidate.overlap
    turns = {
        selection.choices(msgspec.structs.replace(where, policy="round_robin"), PlacementRequest(4000, 100, CHAIN))[
            0
        ].replica.name
        for _ in range(4)
    }
    assert len(turns) == 4


def test_it_counts_what_requests_have_their_replicas_do() -> None:
    _, held, index = make()
    work = SharedAttentionLoad()
    selection = Selection(index, held, work=work, dice=random.Random(1))
    index.sent("a/r0", CHAIN, 4000, 1)
    choice = next(
        c for c in selection.choices(route(target("a", 2)), PlacementRequest(4000, 100, CHAIN)) if c.work.cached
    )
    assert (choice.replica.name, choice.work.cached + choice.need) == ("a/r0", 4100)
    for _ in range(3):
        work.enter("a/r0", AttentionLoad(choice.work.cached))
    assert selection.choices(route(target("a", 2)), PlacementRequest(10))[0].replica.name == "a/r1"
    work.enter("a/r1", AttentionLoad(pending_prefill=6000))  # weighs twice
    assert selection.choices(route(target("a", 2)), PlacementRequest(10))[0].replica.name == "a/r0"


def test_it_goes_by_the_picture_of_the_engines() -> None:
    selection, held, _ = make(r0=Reading(is_usable=False), r1=Reading(kv_tokens=1000), r2=Reading(kv_used=0.99))
    held.enter("a/r1", 1200)
    choices = selection.choices(route(target("a", 4), policy="prefix_aware"), PlacementRequest(100))
    assert "a/r0" not in {choice.replica.name for choice in choices}
    by_name = {choice.replica.name: choice for choice in choices}
    assert by_name["a/r1"].candidate.capacity == 1250
    assert by_name["a/r1"].ranked.is_over
    assert by_name["a/r2"].ranked.pressure > 0.9


def test_it_tries_an_ejected_replica_only_where_the_route_has_no_other() -> None:
    ejected, drained = Reading(is_usable=False, is_last_resort=True), Reading(is_usable=False)
    selection, _, _ = make(r0=ejected, r1=drained)
    names = [
        choice.replica.name for choice in selection.choices(route(target("a", 2), target("b", 3)), PlacementRequest(10))
    ]
    assert names == ["b/r2"]
    names = [choice.replica.name for choice in selection.choices(route(target("a", 2)), PlacementRequest(10))]
    assert names == ["a/r0"]
    assert selection.choices(route(target("a", 2)), PlacementRequest(10), besides=frozenset({"a/r0 m"})) == []
