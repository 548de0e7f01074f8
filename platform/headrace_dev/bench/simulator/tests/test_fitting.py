"""The fit finds the costs of a machine that has them, and the simulated replay does what they say."""

import pytest

from headrace_dev.bench.simulator import fitting, simulated, workload
from headrace_dev.bench.simulator.asking import Seen, Work
from headrace_dev.bench.simulator.benchmark import figures, targets
from headrace_dev.simulator.fleet.profile import Costs

TRUE = Costs(step=0.06, weights=0.0, token=0.0007, sequence=0.003, context=2e-6, prefix=2e-4, before=0.05)


def single(prompt: int, cached: int = 0) -> Seen:
    ttft = TRUE.before + TRUE.step + TRUE.token * (prompt - cached) + TRUE.prefix * cached
    return Seen(Work(0, "", 2), 0, ttft, 0.1, prompt, cached)


def batch(count: int, prompt: int, output: int) -> list[Seen]:
    context = count * (prompt + output / 2)
    tpot = TRUE.step + (TRUE.token + TRUE.sequence) * count + TRUE.context * context
    return [Seen(Work(0, "", output), 0, 1.0, tpot, prompt, 0)] * count


def test_it_finds_the_costs_that_made_the_measurements() -> None:
    fitted = fitting.fit(
        [each for prompt in (88, 210, 390, 740, 1110) for each in (single(prompt, 26), single(prompt + 40, prompt))],
        [batch(1, 92, 16), batch(4, 92, 16), batch(8, 92, 16), batch(1, 994, 12), batch(6, 494, 12)],
    )
    for name in TRUE.__struct_fields__:
        assert getattr(fitted, name) == pytest.approx(getattr(TRUE, name), rel=0.05, abs=1e-9), name


def test_it_needs_enough_to_go_by() -> None:
    with pytest.raises(ValueError, match="too few"):
        fitting.solve([([1.0, 2.0], 3.0)])


def test_the_twin_is_sent_the_same_at_the_same_time() -> None:
    info: dict[str, object] = {"max_total_tokens": 4096, "chunked_prefill_size": 512, "page_size": 1}
    works = [Work(0.0, "a", 4), Work(5.0, "a", 4)]
    seen = [Seen(work, work.at, 0.3, 0.07, 300, 0) for work in works]
    first, second = simulated.replay(simulated.profile(info, TRUE), seen, [list(range(300))] * 2)
    assert first.ttft == pytest.approx(single(300).ttft, rel=0.01)
    assert (first.cached, second.cached) == (0, 299)
    assert second.ttft == pytest.approx(single(300, 299).ttft, rel=0.01)


def test_it_judges_hits_and_first_tokens() -> None:
    real = [Seen(Work(0, "", 4), 0, 1.0, 0.1, 100, 50)] * 4
    twin = [Seen(Work(0, "", 4), 0, 1.3, 0.1, 100, 55)] * 4
    found = targets(figures("sglang", real), figures("simulated", twin))
    assert [target.met for target in found] == [True, False, False]


def test_the_trace_is_the_same_for_the_same_seed() -> None:
    trace = workload.trace(3, requests=30, rate=1.0)
    assert trace == workload.trace(3, requests=30, rate=1.0)
    assert trace != workload.trace(4, requests=30, rate=1.0)
    assert len(trace) == 30
