"""What holds of every policy: usable replicas only, each once, whatever the figures."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.policies import DEFAULT, POLICIES, Ask, Candidate

tokens = st.integers(0, 2**40)
shares = st.floats(0, 1)
candidates = st.lists(
    st.builds(
        Candidate,
        name=st.text("abcdef", min_size=1, max_size=4),
        overlap=st.integers(-5, 2**40),
        load=st.none() | tokens,
        found=tokens,
        unread=tokens,
        capacity=st.none() | tokens,
        need=tokens,
        kv_used=st.none() | shares,
        weight=shares,
        is_usable=st.booleans(),
    ),
    unique_by=lambda candidate: candidate.name,
    max_size=12,
)


@pytest.mark.parametrize("name", POLICIES)
@given(candidates=candidates, prompt=tokens, turn=tokens, mark=st.integers(0, 2**64 - 1), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_it_ranks_the_usable_ones_once_and_alike(
    name: str, candidates: list[Candidate], prompt: int, turn: int, mark: int, seed: int
) -> None:
    ask = Ask(prompt, turn, mark)
    ranking = POLICIES[name].rank(ask, candidates, random.Random(seed))
    assert sorted(one.name for one in ranking) == sorted(c.name for c in candidates if c.is_usable)
    assert ranking == POLICIES[name].rank(ask, candidates, random.Random(seed))
    assert all(0 <= one.credit <= 1 and 0 <= one.pressure <= 1 for one in ranking)


@given(candidates=candidates, prompt=tokens)
@settings(max_examples=60, deadline=None)
def test_it_never_puts_one_without_room_before_one_within_the_cap(candidates: list[Candidate], prompt: int) -> None:
    over = [one.is_over for one in POLICIES[DEFAULT].rank(Ask(prompt), candidates, random.Random(1))]
    assert over == sorted(over)


def test_it_takes_replicas_in_turn() -> None:
    candidates = [Candidate(name) for name in "abc"] + [Candidate("dead", is_usable=False)]
    firsts = [POLICIES["round_robin"].rank(Ask(1, turn), candidates, random.Random(1))[0].name for turn in range(6)]
    assert firsts == ["a", "b", "c", "a", "b", "c"]


def test_it_takes_the_least_loaded_in_tokens() -> None:
    candidates = [
        Candidate("many", load=900, running=9),
        Candidate("one", load=200_000, running=1),
        Candidate("unknown"),
        Candidate("full", load=100, capacity=100, need=1),
    ]
    ranking = POLICIES["least_loaded"].rank(Ask(1), candidates, random.Random(1))
    assert [one.name for one in ranking] == ["many", "unknown", "one", "full"]


def test_it_takes_the_better_of_two() -> None:
    candidates = [Candidate(name, load=load) for name, load in {"a": 0, "b": 10, "c": 20, "d": 30}.items()]
    dice = random.Random(5)
    firsts = Counter(POLICIES["power_of_two"].rank(Ask(1), candidates, dice)[0].name for _ in range(1200))
    assert firsts["d"] == 0  # whoever it meets is better
    assert 500 <= firsts["a"] <= 700  # in half of all pairs
    assert firsts["b"] > firsts["c"] > 0
