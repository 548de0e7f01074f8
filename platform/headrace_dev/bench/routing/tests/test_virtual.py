"""Policies in virtual time: deterministic, complete, and in the order they should come in."""

from functools import cache

import pytest

from headrace_dev.bench.routing.benchmark import sized
from headrace_dev.bench.routing.entrants import ENTRANTS
from headrace_dev.bench.routing.pooled import pooled_hit_rate
from headrace_dev.bench.routing.served import Figures
from headrace_dev.bench.routing.tests import small
from headrace_dev.bench.routing.virtual import VirtualRun
from headrace_dev.bench.traces import load
from routing.policies import POLICIES


@cache
def run(name: str) -> Figures:
    shape = small.shape()
    return VirtualRun(shape, ENTRANTS[name].virtual(shape, 1)).run(small.requests(shape))


def test_it_serves_the_same_requests_the_same_way_again() -> None:
    shape, entrant = small.shape(), ENTRANTS["headrace prefix_aware"]
    again = VirtualRun(shape, entrant.virtual(shape, 1)).run(small.requests(shape))
    assert again == run("headrace prefix_aware")


def test_a_fleet_of_another_size_gets_as_many_arrivals_for_each_replica() -> None:
    full = load()
    shape, arrivals = sized(full, 64, 0.5)
    assert (shape.replicas, arrivals) == (64, 0.5 * 64 / full.replicas)
    assert shape.chat.rate == full.chat.rate * arrivals
    assert sized(full, None, 1.0) == (full, 1.0)


@pytest.mark.parametrize("name", ENTRANTS)
def test_every_entrant_serves_every_request(name: str) -> None:
    shape = small.shape()
    judged = [one for one in small.requests(shape) if one.asked.at >= shape.warmup]
    assert run(name).requests == len(judged)
    assert run(name).failed == 0


def test_prefix_aware_hits_most_and_serves_most_within_its_targets() -> None:
    ours = run("headrace prefix_aware")
    for policy in POLICIES.keys() - {"prefix_aware"}:
        assert ours.hit_rate > run(f"headrace {policy}").hit_rate
        assert ours.goodput >= run(f"headrace {policy}").goodput


def test_it_hears_later_and_serves_all_the_same() -> None:
    shape = small.shape()
    late = VirtualRun(shape, ENTRANTS["headrace prefix_aware"].virtual(shape, 1), late=0.05).run(small.requests(shape))
    now = run("headrace prefix_aware")
    assert (late.requests, late.failed) == (now.requests, 0)
    assert now.ttft_p50 + 0.005 < late.ttft_p50 < now.ttft_p50 + 0.1


def test_nothing_hits_more_than_one_pooled_cache() -> None:
    shape = small.shape()
    bound = pooled_hit_rate(shape, small.requests(shape))
    assert all(run(name).hit_rate <= bound for name in ENTRANTS)
    assert run("headrace prefix_aware").hit_rate > 0.9 * bound
