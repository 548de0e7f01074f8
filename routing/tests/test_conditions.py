"""Conditions: each that is set must hold; what is said of them reads back as it was."""

import pytest

from routing.conditions import BadConditions, Conditions, Facts, conditions, read

FACTS = Facts(
    prompt=9000,
    output=500,
    modalities=frozenset({"text", "image"}),
    tools=True,
    tenant="acme",
    project="acme/web",
    key="k1",
    tier="gold",
)


@pytest.mark.parametrize(
    "line",
    [
        "", "min_prompt_tokens=9000", "max_prompt_tokens=9000", "min_output_tokens=1 max_output_tokens=500",
        "modalities=text,image", "modalities=text,image,audio", "tools=yes", "tenants=globex,acme", "projects=acme/web",
        "keys=k0,k1", "tiers=gold", "min_prompt_tokens=10 tools=yes tenants=acme tiers=gold,silver",
    ],
)  # fmt: skip
def test_it_takes_what_it_wants(line: str) -> None:
    assert read(line).failed(FACTS) is None
    assert str(read(line)) == line
    assert conditions(read(line).as_dict()) == read(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("min_prompt_tokens=9001", "min_prompt_tokens=9001: it has 9000"),
        ("max_output_tokens=499", "max_output_tokens=499: it has 500"),
        ("modalities=text", "modalities=text: it has image"),
        ("tools=no", "tools=no"),
        ("tenants=globex", "tenants=globex: it is acme"),
        ("projects=acme/app", "projects=acme/app: it is acme/web"),
        ("keys=k2", "keys=k2: it is k1"),
        ("tiers=silver", "tiers=silver: it is gold"),
        ("tools=yes tiers=silver", "tiers=silver: it is gold"),
    ],
)
def test_it_says_which_condition_fails(line: str, said: str) -> None:
    assert read(line).failed(FACTS) == said


def test_it_knows_a_request_without_a_tier() -> None:
    assert read("tiers=gold").failed(Facts()) == "tiers=gold: it is none"


@pytest.mark.parametrize(
    "line",
    ["size=3", "tools", "tools=maybe", "min_prompt_tokens=-1", "min_prompt_tokens=x", "modalities=smell",
     "projects=web", "min_prompt_tokens=5 max_prompt_tokens=4"],
)  # fmt: skip
def test_it_refuses_what_cannot_be(line: str) -> None:
    with pytest.raises(BadConditions):
        read(line)


def test_it_refuses_what_it_does_not_know_in_the_database() -> None:
    with pytest.raises(BadConditions):
        conditions({"min_prompt_tokens": 5, "moon": "full"})
    assert conditions({}) == Conditions()
