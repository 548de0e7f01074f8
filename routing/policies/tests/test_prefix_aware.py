"""One score and a cap: affinity where it is worth its load, and never an overloaded replica."""

import random

import pytest

from routing.policies import Ask, Candidate, PrefixAware, Ranked, Weights

STILL = PrefixAware(Weights(explore=0))


def best(*candidates: Candidate, prompt: int = 4000) -> str:
    return STILL.rank(Ask(prompt), candidates, random.Random(1))[0].name


def test_it_prefers_who_has_the_prefix() -> None:
    assert best(Candidate("a", load=0), Candidate("b", overlap=3900, load=0), Candidate("c", load=0)) == "b"


def test_it_keeps_affinity_beside_a_dead_idle_replica() -> None:
    """vllm-project/router#254: loads 5, 5 and a dead one with 0, which once made the two look overloaded."""
    tokens = 5 * 4000
    alive = [Candidate("w1", load=tokens), Candidate("w2", overlap=4000, load=tokens)]
    dead = Candidate("w3", load=0, is_usable=False)
    ranking = STILL.rank(Ask(4000), [*alive, dead], random.Random(1))
    assert [one.name for one in ranking] == ["w2", "w1"]
    assert [one.relative for one in ranking] == [0, 0]


def test_it_leaves_a_busy_holder_whose_load_is_counted_right() -> None:
    """vllm-project/router#197: one slow replica has the prefix and ten requests; zeroed counters sent it the rest."""
    slow = Candidate("fu1", overlap=4000, load=40_000)
    assert best(slow, Candidate("fu2", load=4000), Candidate("fu3", load=0)) == "fu3"


def test_it_goes_by_kv_use_before_request_counts() -> None:
    """smg#1621: 2 requests fill one engine's cache, 10 leave another's empty."""
    full = Candidate("fu1", load=20_000, kv_used=0.98, running=2)
    assert best(full, Candidate("fu2", load=20_000, kv_used=0.1, running=10)) == "fu2"
    warm = Candidate("fu1", overlap=4000, load=20_000, kv_used=0.98, running=2)
    assert best(warm, Candidate("fu2", load=20_000, kv_used=0.1, running=10)) == "fu2"


def test_it_counts_what_requests_found_in_the_cache_as_work_and_not_as_room() -> None:
    """A prefix that ten requests share is stored once and read by each of them, at every step."""
    sharing = Candidate("fu1", load=4000, found=60_000, capacity=20_000, need=500)
    ranking = STILL.rank(Ask(4000), [sharing, Candidate("fu2", load=16_000, capacity=20_000)], random.Random(1))
    assert [one.name for one in ranking] == ["fu2", "fu1"]
    assert sharing.has_room
    assert Candidate("unknown", found=100).work is None


def test_it_lets_prompts_be_read_before_it_sends_more() -> None:
    reading = Candidate("fu1", load=30_000, unread=12_000)
    assert best(reading, Candidate("fu2", load=40_000)) == "fu2"


def test_it_puts_those_without_room_last() -> None:
    """smg#2518: whoever became full is not asked while another has room, whatever it has cached."""
    full = Candidate("fu1", overlap=4000, load=64_000, capacity=65_000, need=2000)
    ranking = STILL.rank(Ask(4000), [full, Candidate("fu2", load=62_000, capacity=65_000, need=2000)], random.Random(1))
    assert [(one.name, one.is_over) for one in ranking] == [("fu2", False), ("fu1", True)]


def test_it_takes_any_size_on_an_idle_replica() -> None:
    assert Candidate("a", load=0, capacity=100, need=5000).has_room
    assert not Candidate("a", load=1, capacity=100, need=5000).has_room


@pytest.mark.parametrize("load", [None, 30_000])
def test_it_weighs_an_unknown_load_as_the_mean(load: int | None) -> None:
    ranking = STILL.rank(
        Ask(4000),
        [Candidate("a", load=10_000), Candidate("b", load=load), Candidate("c", load=50_000)],
        random.Random(1),
    )
    assert {one.name: one.relative for one in ranking}["b"] == 0
    assert ranking[0].name == "a"


def test_it_spreads_a_prefix_that_everyone_shares_over_all_replicas() -> None:
    """One hot prompt sent 400 times, each held for 64 turns: no replica holds over twice the mean for long."""
    overlap, load = dict.fromkeys("abcdefgh", 0), dict.fromkeys("abcdefgh", 0)
    running: list[tuple[str, int]] = []
    worst = []
    for turn in range(400):
        candidates = [Candidate(n, overlap=overlap[n], load=load[n], need=4096 - overlap[n] + 500) for n in load]
        chosen = STILL.rank(Ask(4096, mark=7), candidates, random.Random(turn))[0].name
        need = next(c.need for c in candidates if c.name == chosen)
        load[chosen] += need
        overlap[chosen] = 4096
        running.append((chosen, need))
        if len(running) > 64:
            name, freed = running.pop(0)
            load[name] -= freed
        if turn > 100:
            worst.append(max(load.values()) / (sum(load.values()) / 8))
    assert sum(held > 0 for held in overlap.values()) >= 4
    assert max(worst) < 3.5  # below quiet_tokens of difference nobody waits


def test_it_sends_a_conversation_back_although_its_system_prompt_is_everywhere() -> None:
    others = [Candidate(f"r{n}", overlap=6000, load=30_000) for n in range(7)]
    assert best(*others, Candidate("home", overlap=7900, load=32_000), prompt=8000) == "home"


def test_it_gives_a_token_less_credit_the_more_have_it() -> None:
    def credit(holders: int) -> float:
        candidates = [Candidate(f"r{n}", overlap=4000 if n < holders else 0, load=0) for n in range(8)]
        return STILL.credits(Ask(4000), candidates)[0]

    credits = [credit(holders) for holders in range(1, 9)]
    assert credits == sorted(credits, reverse=True)
    assert (credits[0], credits[-1]) == (1, 0)


def test_it_lets_short_prompts_count_less_than_queues() -> None:
    holder, idle = Candidate("holder", overlap=100, load=20_000), Candidate("idle", load=10_000)
    assert best(holder, idle, prompt=100) == "idle"


def test_it_gives_a_replica_that_starts_slowly_its_share_alone() -> None:
    load = {"old": 0, "new": 0}
    for turn in range(200):
        candidates = [Candidate("old", load=load["old"]), Candidate("new", load=load["new"], weight=0.1)]
        load[STILL.rank(Ask(2000), candidates, random.Random(turn))[0].name] += 2000
    assert 0.02 < load["new"] / load["old"] < 0.2


def test_it_shares_by_capacity_where_it_is_known() -> None:
    load = {"big": 0, "small": 0}
    for turn in range(200):
        candidates = [
            Candidate("big", load=load["big"], capacity=3_000_000),
            Candidate("small", load=load["small"], capacity=1_000_000),
        ]
        load[STILL.rank(Ask(2000), candidates, random.Random(turn))[0].name] += 2000
    assert 2.5 < load["big"] / load["small"] < 3.5


def test_it_explores_now_and_then_within_the_cap() -> None:
    leads = explored(overlap=1900)
    assert 15 <= sum(one.is_explored for one in leads) <= 100
    assert {one.name for one in leads if one.is_explored} == {"warm", "cold"}


def test_it_explores_nowhere_that_would_read_a_known_prompt_anew() -> None:
    assert {one.name for one in explored(overlap=2100)} == {"warm"}
    assert {one.name for one in explored(overlap=4000)} == {"warm"}


def explored(overlap: int) -> list[Ranked]:
    """Who leads, of many rankings of a prompt of 4,000 tokens, of which one replica has so many."""
    candidates = [
        Candidate("warm", overlap=overlap, load=1000),
        Candidate("cold", load=1000),
        Candidate("full", load=90_000),
    ]
    dice, policy = random.Random(3), PrefixAware()
    return [policy.rank(Ask(4000), candidates, dice)[0] for _ in range(5000)]


def test_it_breaks_ties_alike_everywhere_and_evenly() -> None:
    candidates = [Candidate(f"pool/r{n}", load=0) for n in range(4)]
    first = [STILL.rank(Ask(4000, mark=mark * 7919), candidates, random.Random(mark))[0].name for mark in range(400)]
    again = [STILL.rank(Ask(4000, mark=mark * 7919), candidates, random.Random(-mark))[0].name for mark in range(400)]
    assert first == again
    assert all(60 <= first.count(c.name) <= 140 for c in candidates)
