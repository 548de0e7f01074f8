"""Figures and verdict from what was served."""

import dataclasses
from typing import Any

import pytest

from headrace_dev.bench.routing.entrants import ENTRANTS
from headrace_dev.bench.routing.served import Figures, Held, Served, judge, longest_over
from headrace_dev.bench.routing.tests import small
from headrace_dev.bench.routing.verdict import rows, targets
from headrace_dev.bench.routing.virtual import VirtualRun


def served(number: int, at: float, ttft: float, kind: str = "chat") -> Served:
    return Served(number, kind, at, prompt=1000, cached=400, ttft=ttft, tpot=0.03)


def test_it_judges_what_came_after_the_warm_up() -> None:
    shape = small.shape()
    found = [served(0, 1.0, 9.0), served(1, 10.0, 0.5), served(2, 11.0, 1.5), served(3, 12.0, 14.0, "batch")]
    failed = Served(4, "chat", 13.0, failed="the connection was lost")
    figures = judge(shape, [*found, failed], [[Held(2, 0), Held(0, 0), Held(0, 1)]] * 160)
    assert (figures.requests, figures.failed) == (4, 1)
    assert figures.goodput == pytest.approx(2 / 32)
    assert figures.within_slo == 0.5
    assert figures.hit_rate == pytest.approx(0.4)
    assert (figures.ttft_p50, figures.ttft_p99) == (0.5, 1.5)
    assert figures.imbalance == 2.0
    assert (figures.queue_over, figures.held_over) == (10.0, 0.0)


def test_it_finds_the_longest_time_over_twice_the_mean() -> None:
    even, crowded, elsewhere = [3, 3, 3], [9, 1, 1], [0, 0, 4]
    assert longest_over([even, crowded, crowded, even, crowded]) == 2
    assert longest_over([crowded, elsewhere, elsewhere, elsewhere]) == 3
    assert longest_over([[6, 3, 0]]) == 0  # twice the mean, not over it
    assert longest_over([]) == 0


def test_each_target_takes_the_worst_seed() -> None:
    shape = small.shape(seconds=12.0, warmup=2.0)
    one = VirtualRun(shape, ENTRANTS["headrace prefix_aware"].virtual(shape, 1)).run(small.requests(shape))

    def having(**changed: Any) -> dict[int, Figures]:
        return {seed: dataclasses.replace(one, **{k: v * seed for k, v in changed.items()}) for seed in (1, 2)}

    runs = {
        "headrace prefix_aware": having(goodput=10, hit_rate=0.4, queue_over=1),
        "headrace round_robin": having(goodput=4),
        "sglang-router default": having(goodput=3),
        "sglang-router 0.5/2/3": {1: dataclasses.replace(one, goodput=8.0), 2: dataclasses.replace(one, goodput=18.0)},
    }
    found = targets(runs, {1: 0.5, 2: 0.8})
    assert [round(target.value or 0, 3) for target in found] == [1.111, 2.5, 0.8, 2, 0]
    assert [target.met for target in found] == [False, True, False, True, True]
    assert rows(runs)[0]["goodput"] == 10


def test_what_was_not_run_is_not_judged() -> None:
    assert [target.value for target in targets({}, {})] == [None, None, None, None, 0]
