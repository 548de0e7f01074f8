"""What the index believes: fed by what was sent, corrected by reports, bounded, alike in all processes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.prefix_index import Chain, Change, Hasher, PrefixIndex
from routing.prefix_index.replica_blocks import ReplicaBlocks

HASHER = Hasher("secret")
SECOND = 1000


def text(seed: int, size: int = 16_000) -> bytes:
    return random.Random(seed).randbytes(size)


def chain(seed: int, size: int = 16_000) -> Chain:
    return HASHER.chain(text(seed, size), "acme")


@pytest.fixture
def index() -> PrefixIndex:
    return PrefixIndex(tokens=100_000, most=10_000)


def test_it_predicts_what_was_sent(index: PrefixIndex) -> None:
    index.sent("a", chain(1), 4000, 1 * SECOND)
    assert 3700 < index.overlap("a", chain(1), 4000) <= 4000
    assert index.overlap("b", chain(1), 4000) == 0
    assert index.overlap("a", chain(2), 4000) == 0
    longer = HASHER.chain(text(1) + text(2), "acme")
    assert 3700 < index.overlap("a", longer, 8000) <= 4000


def test_it_knows_nothing_of_the_same_prompt_in_another_scope(index: PrefixIndex) -> None:
    index.sent("a", chain(1), 4000, 1 * SECOND)
    assert index.overlap("a", HASHER.chain(text(1), "globex"), 4000) == 0


def test_it_forgets_what_is_as_old_as_what_an_engine_lost(index: PrefixIndex) -> None:
    index.sent("a", chain(1), 4000, 1 * SECOND)
    index.sent("a", chain(2), 4000, 2 * SECOND)
    index.sent("a", chain(3), 4000, 30 * SECOND)
    sent = index.sent("a", chain(2), 4000, 60 * SECOND)
    index.reported(sent, 4000, 10, 61 * SECOND)
    assert index.overlap("a", chain(1), 4000) == 0
    assert index.overlap("a", chain(2), 4000) > 3000  # it was prefilled just now
    assert index.overlap("a", chain(3), 4000) > 3000  # newer than what was lost


def test_it_draws_no_conclusion_while_the_first_may_still_be_in_prefill(index: PrefixIndex) -> None:
    index.sent("a", chain(1), 4000, 1 * SECOND)
    twin = index.sent("a", chain(1), 4000, 2 * SECOND)
    index.sent("a", chain(2), 4000, 2 * SECOND)
    index.reported(twin, 4000, 0, 3 * SECOND)
    assert index.overlap("a", chain(2), 4000) > 3000


def test_it_loses_trust_in_an_engine_without_a_cache_and_finds_it_again(index: PrefixIndex) -> None:
    for second in range(1, 40):
        index.reported(index.sent("a", chain(1), 4000, second * SECOND), 4000, 0, second * SECOND + 1)
    assert index.overlap("a", chain(1), 4000) < 150
    for second in range(40, 80):
        index.reported(index.sent("a", chain(1), 4000, second * SECOND), 4000, 3999, second * SECOND + 1)
    assert index.overlap("a", chain(1), 4000) > 3500


def test_it_learns_what_others_warmed(index: PrefixIndex) -> None:
    sent = index.sent("a", chain(1), 4000, 1 * SECOND)
    index.began("a", 1)
    assert index.reported(sent, 4000, 3999, 2 * SECOND) == 0
    assert index.overlap("a", chain(1), 4000) > 3700


def test_it_forgets_what_an_engine_held_that_was_started_anew_and_once(index: PrefixIndex) -> None:
    index.began("a", 0)
    for name in "ab":
        index.sent(name, chain(1), 4000, 1 * SECOND)
    index.began("a", 0)  # nobody knows
    assert index.overlap("a", chain(1), 4000) > 3700
    index.began("a", 7)
    assert index.overlap("a", chain(1), 4000) == 0
    assert index.overlap("b", chain(1), 4000) > 3700
    index.sent("a", chain(1), 4000, 2 * SECOND)
    index.began("a", 7)
    index.began("a", 0)
    index.began("a", 7)
    assert index.overlap("a", chain(1), 4000) > 3700


def test_it_takes_back_what_was_never_prefilled_and_no_more(index: PrefixIndex) -> None:
    index.sent("a", chain(1), 4000, 1 * SECOND)
    longer = HASHER.chain(text(1) + text(2), "acme")
    index.failed(index.sent("a", longer, 8000, 2 * SECOND))
    assert 3700 < index.overlap("a", longer, 8000) <= 4000
    sent = index.sent("a", chain(3), 4000, 3 * SECOND)
    index.sent("a", chain(3), 4000, 4 * SECOND)
    index.failed(sent)
    assert index.overlap("a", chain(3), 4000) > 3700  # another was sent it since


def test_it_holds_no_more_than_the_replicas_cache(index: PrefixIndex) -> None:
    index.resize({"a": 8200})
    index.sent("a", chain(0), 4000, 0)
    index.resize({"a": 8200})
    for seed in range(1, 10):
        index.sent("a", chain(seed), 4000, seed * SECOND)
    held = [seed for seed in range(10) if index.overlap("a", chain(seed), 4000) > 3700]
    assert held == [8, 9]
    index.resize({"b": None})
    assert index.entries == 0


def test_it_is_the_same_in_a_process_that_is_told() -> None:
    there = PrefixIndex(tokens=100_000, most=10_000)
    here = PrefixIndex(tokens=100_000, most=10_000, tell=there.heard)
    here.sent("a", chain(1), 4000, 1 * SECOND)
    here.sent("b", chain(2), 4000, 1 * SECOND)
    here.failed(here.sent("b", chain(3), 4000, 2 * SECOND))
    here.reported(here.sent("a", chain(1), 4000, 60 * SECOND), 4000, 0, 61 * SECOND)
    here.sent("c", chain(4), 4000, 62 * SECOND)
    for seed in range(1, 5):
        for name in "abc":
            trusted = round(here.overlap(name, chain(seed), 4000) / here.trust(name))
            assert there.overlap(name, chain(seed), 4000) == pytest.approx(trusted, abs=1)
    there.heard(Change("unheard of", "a"))


@given(
    orders=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 11), st.integers(0, 400)), max_size=60),
    capacity=st.integers(256, 60_000),
    most=st.integers(1, 120),
)
@settings(max_examples=80, deadline=None)
def test_it_stays_within_its_bounds_and_whole(orders: list[tuple[int, int, int]], capacity: int, most: int) -> None:
    """Whatever is used and forgotten: bounds hold, sizes add up, and what is held has all before it held too."""
    held = ReplicaBlocks(capacity, most)
    for now, (order, seed, size) in enumerate(orders):
        hashes = chain(seed % 3, 100 * size).hashes
        match order:
            case 0 | 1:
                held.use(hashes, now)
            case 2:
                held.forget(chain(seed % 3, 40_000).hashes[size // 8 :])
            case 3:
                held.forget_until(now // 2)
        assert 0 <= held.bytes <= capacity
        assert len(held) <= most
        for number in range(3):
            every = chain(number, 40_000).hashes
            present = [held.last_used(block) is not None for block in every]
            assert present == sorted(present, reverse=True)
            assert held.match(every) == sum(present)
    held.forget_until(len(orders))
    assert (held.bytes, len(held)) == (0, 0)
