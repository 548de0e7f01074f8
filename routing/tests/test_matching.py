"""First match wins; canaries take their share before, weights divide, shadows are copied to and never asked."""

import random
from collections import Counter
from typing import Any

from routing.catalog import Route, Target
from routing.conditions import Facts, read
from routing.matching import Draw, drawn_by, match

DICE = random.Random(11)


def target(name: str, wants: str = "", **terms: Any) -> Target:
    return Target(name, (), conditions=read(wants), **terms)


def route(*targets: Target) -> Route:
    return Route("chat", 0, 8192, 500, "tenant", "refuse", "prefix_aware", 5, 60, 60, 600, targets)


def chance(name: str) -> float:
    return DICE.random()


def names(of: Route, facts: Facts | None = None, draw: Draw = chance) -> str:
    return "".join(each.name for each in match(of, facts or Facts(), draw).targets)


def test_it_goes_to_the_first_that_takes_it_and_then_the_others() -> None:
    where = route(target("a", "min_prompt_tokens=1000"), target("b"), target("c", "tenants=acme"), target("d"))
    assert names(where) == "bd"
    assert names(where, Facts(prompt=1000, tenant="acme")) == "abcd"
    assert match(where, Facts(), chance).verdicts == [
        "no: min_prompt_tokens=1000: it has 0",
        "yes",
        "no: tenants=acme: it is none",
        "yes",
    ]


def test_it_knows_when_no_target_takes_it() -> None:
    assert names(route(target("a", "tools=yes"))) == ""


def test_it_gives_a_canary_its_share_and_nothing_else() -> None:
    where = route(target("a"), target("c", canary=10.0), target("b"))
    went = Counter(names(where) for _ in range(4000))
    assert set(went) == {"cab", "ab"}
    assert 300 < went["cab"] < 500


def test_it_divides_by_weight_at_the_head() -> None:
    where = route(target("a", weight=3), target("b", weight=1), target("z"))
    went = Counter(names(where) for _ in range(4000))
    assert set(went) == {"abz", "baz"}
    assert 900 < went["baz"] < 1100
    assert names(route(target("a"), target("b", weight=100))) == "ab"


def test_it_copies_a_share_to_a_shadow() -> None:
    where = route(target("s", "tenants=acme", shadow=50.0), target("a"))
    drawn = [match(where, Facts(tenant="acme"), chance) for _ in range(1000)]
    assert all([each.name for each in one.targets] == ["a"] for one in drawn)
    assert 400 < sum(len(one.shadows) for one in drawn) < 600
    assert match(where, Facts(), chance).shadows == []


def test_it_keeps_a_conversation_where_it_is() -> None:
    talks = [b"talk %d" % number for number in range(3000)]
    where = route(target("a", weight=3), target("b", weight=1), target("c", canary=10.0), target("z"))

    def went(where: Route) -> dict[bytes, str]:
        return {talk: names(where, draw=drawn_by(talk)) for talk in talks}

    before = went(where)
    assert went(where) == before
    counts = Counter(before.values())
    assert set(counts) == {"cabz", "cbaz", "abz", "baz"}
    assert 230 < counts["cabz"] + counts["cbaz"] < 370
    assert 600 < counts["baz"] + counts["cbaz"] < 900
    grown = went(route(target("a", weight=3), target("b", weight=1), target("c", canary=20.0), target("z")))
    assert all(grown[talk][0] == "c" for talk in talks if before[talk][0] == "c")
    assert [talk for talk in talks if grown[talk][-3:] != before[talk][-3:]] == []  # the weights' draw is its own
