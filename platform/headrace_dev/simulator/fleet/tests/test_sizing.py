"""What engines.sizing predicts for one replica beside this simulation of it, with the same constants, no wall clock.

Sizing is arithmetic over averages; the scheduler has queues, chunks and reservations. The bounds say how far to trust
which of its figures (the table in its README).
"""

import random
from functools import lru_cache
from statistics import mean

import pytest

from engines.sizing import latency
from engines.sizing.lengths import Lengths, Workload
from engines.sizing.tests.questions import replica
from headrace_dev.simulator.fleet.cost import sized_profile
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.virtual import Clock, VirtualReplica

SECONDS = 300
WORKLOADS = {
    "equal": Workload(1, Lengths(2000), Lengths(300)),
    "varied": Workload(1, Lengths(2000, 1.0), Lengths(300, 1.0)),
}


@lru_cache
def simulated(lengths: str, rate: float) -> dict[str, float]:
    """Llama 3.1 8B on one H100 under Poisson arrivals; the first tenth of the time is left out."""
    source, clock, ended = random.Random(1), Clock(), list[Request]()
    profile = sized_profile(replica(), name="sized", page=64, max_running=4096)
    one = VirtualReplica(profile, clock, on_end=lambda request, now: ended.append(request))
    workload, due = WORKLOADS[lengths], 0.0
    while (due := due + source.expovariate(rate)) < SECONDS:
        prompt, output = (max(2, round(each.quantile(source.random()))) for each in (workload.prompt, workload.output))
        asked = Request("", [hash((due, k)) for k in range((prompt + output) // 64)], prompt, output, output)
        clock.at(due, lambda asked=asked: one.add(asked))  # type: ignore[misc]
    clock.run()
    kept = [r for r in ended if r.arrived > SECONDS / 10]
    decoding = sum((r.ended_at or 0) - (r.first_at or 0) for r in kept)
    ttft = sorted((r.first_at or 0) - r.arrived for r in kept)
    return {
        "ttft_mean": mean(ttft),
        "ttft_p99": ttft[int(len(ttft) * 0.99)],
        "tpot_mean": decoding / sum(r.generated - 1 for r in kept),
    }


@pytest.mark.parametrize(("lengths", "within"), [("equal", 0.10), ("varied", 0.20)])
@pytest.mark.parametrize("rate", [2, 5, 8, 9.75])
def test_it_predicts_the_mean_time_of_a_token(lengths: str, within: float, rate: float) -> None:
    load = latency.at_rate(replica(), WORKLOADS[lengths], rate)
    assert load is not None
    assert load.tpot_mean == pytest.approx(simulated(lengths, rate)["tpot_mean"], rel=within)


@pytest.mark.parametrize(("lengths", "within"), [("equal", 0.15), ("varied", 0.30)])
@pytest.mark.parametrize("rate", [2, 5, 8])
def test_it_predicts_the_mean_wait_for_a_first_token(lengths: str, within: float, rate: float) -> None:
    load = latency.at_rate(replica(), WORKLOADS[lengths], rate)
    assert load is not None
    assert load.ttft_mean == pytest.approx(simulated(lengths, rate)["ttft_mean"], rel=within)


@pytest.mark.parametrize("rate", [2, 5, 8])
def test_its_p99_of_the_first_token_is_near_for_equal_requests_and_half_for_varied_ones(rate: float) -> None:
    """A known weakness: long prompts come together more often than an exponential tail says."""
    for lengths, low, high in (("equal", 0.8, 1.25), ("varied", 0.4, 1.1)):
        load = latency.at_rate(replica(), WORKLOADS[lengths], rate)
        assert load is not None
        assert low < load.ttft_p99 / simulated(lengths, rate)["ttft_p99"] < high
