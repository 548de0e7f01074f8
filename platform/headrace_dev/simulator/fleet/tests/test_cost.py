"""The step's cost, and that it is sizing's roofline where a replica has that form."""

import msgspec
import pytest

from engines.sizing.step import StepLoad, step
from engines.sizing.tests.questions import replica
from headrace_dev.simulator.fleet import cost
from headrace_dev.simulator.fleet.tests.toys import COSTS


def test_it_adds_up_what_a_step_does() -> None:
    assert cost.seconds(COSTS, prefill=0, pairs=0, decoding=4, context=5000) == pytest.approx(0.001 + 0.010 + 0.005)
    found = msgspec.structs.replace(COSTS, prefix=1e-5)
    told = cost.seconds(found, prefill=40, pairs=0, decoding=0, context=0, prefix=1000)
    assert told - cost.seconds(COSTS, prefill=40, pairs=0, decoding=0, context=0) == pytest.approx(0.010)
    assert cost.seconds(COSTS, prefill=500, pairs=1e6, decoding=0, context=0) == pytest.approx(0.001 + 0.050)


def test_it_counts_whom_a_prompt_token_attends_to() -> None:
    assert cost.pairs(0, 100) == 5000
    assert cost.pairs(0, 60) + cost.pairs(60, 100) == cost.pairs(0, 100)


@pytest.mark.parametrize(("name", "gpu"), [("llama-3.1-8b", "h100"), ("llama-3.1-8b", "l40s"), ("qwen3-8b", "a100")])
def test_it_costs_what_sizing_says(name: str, gpu: str) -> None:
    sized = replica(name, gpu)
    costs = cost.sized(sized)
    for sequences, context in ((1, 500), (30, 2000), (200, 1500)):
        told = cost.seconds(costs, prefill=0, pairs=0, decoding=sequences, context=sequences * context)
        assert told == pytest.approx(step(sized, StepLoad(sequences=sequences, context=context)).total, rel=0.03)
    for start, end in ((0, 512), (0, 8192), (4000, 8000)):
        load = StepLoad(prefill=end - start, prefill_context=(start + end) / 2)
        told = cost.seconds(costs, prefill=end - start, pairs=cost.pairs(start, end), decoding=0, context=0)
        assert told == pytest.approx(step(sized, load).total, rel=0.03)


def test_it_refuses_a_replica_of_another_form() -> None:
    with pytest.raises(ValueError, match="only dense models"):
        cost.sized(replica("mixtral-8x7b", "h100", tensor=2))
