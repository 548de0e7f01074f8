"""The 200 requests/s chat product, and what moves its answer."""

import math
from dataclasses import asdict

import pytest

from engines.sizing.alternatives import explore
from engines.sizing.cards import model, model_names
from engines.sizing.errors import BadValue, DoesNotFit, OutOfReach
from engines.sizing.reasoning import lines
from engines.sizing.tests.questions import chat


def test_it_answers_the_chat_product_with_about_twenty_h100() -> None:
    answer = chat()
    assert 15 <= answer.gpus <= 30
    assert answer.fleet.load.ttft_p99 <= 1
    assert answer.fleet.load.tpot_p99 <= 0.04
    assert answer.fleet.limit == "TPOT p99"
    assert answer.bound == "bandwidth"


def test_it_shows_its_reasoning_in_order() -> None:
    text = lines(chat())
    assert [line.split(":")[0] for line in text] == [
        "Weights", "KV cache", "Room", "Prefill", "Decode", "Together", "Fleet",
    ]  # fmt: skip
    assert "131,072 bytes a token" in text[1]


def test_it_needs_no_fewer_than_the_work_and_one_replica_fewer_would_miss() -> None:
    answer = chat()
    needed = answer.question.workload.rate / answer.fleet.best_rate
    assert answer.fleet.replicas - 1 < needed <= answer.fleet.replicas
    service_bound = 9.1 + 11.9  # replicas' work in prefill and in decode, as the reasoning says
    assert needed == pytest.approx(service_bound, rel=0.1)


@pytest.mark.parametrize(
    "easier",
    [
        {"weights": "fp8"},
        {"kv": "fp8"},
        {"cached": 0.5},
        {"prompt": 500},
        {"output": 100},
        {"rate": 100},
        {"tpot_p99": 0.08},
        {"gpu": "h200"},
        {"gpu": "b200"},
        {"speculate": "4:0.7"},
        {"output_cv": 0, "prompt_cv": 0},
    ],
)
def test_it_needs_fewer_gpus_when_the_work_is_easier(easier: dict[str, object]) -> None:
    assert chat(**easier).gpus < chat().gpus


@pytest.mark.parametrize(
    "harder", [{"rate": 400}, {"growth": 1.5}, {"tpot_p99": 0.02}, {"gpu": "a100"}, {"prompt": 6000}, {"spare": 2}]
)
def test_it_needs_more_gpus_when_the_work_is_harder(harder: dict[str, object]) -> None:
    assert chat(**harder).gpus > chat().gpus


def test_it_scales_with_the_rate() -> None:
    assert chat(rate=2000).fleet.replicas == pytest.approx(10 * chat().fleet.replicas, rel=0.05)


def test_it_shortens_the_longest_pause_with_small_mixed_chunks() -> None:
    assert chat(mixed=True, chunk=1024).fleet.load.longest_gap < chat().fleet.load.longest_gap / 3


def test_it_reads_prompts_more_slowly_in_small_mixed_chunks() -> None:
    assert chat(mixed=True, chunk=512, tp=1).fleet.load.ttft_mean > chat(mixed=True, tp=1).fleet.load.ttft_mean


def test_it_splits_prefill_from_decode() -> None:
    answer = chat(disaggregate=True)
    assert answer.pools is not None
    assert answer.pools.ttft_p99 <= 1
    assert answer.pools.tpot_p99 <= 0.04
    assert answer.pools.decode_rate > answer.fleet.best_rate
    assert 0 < answer.pools.transfer < 0.05
    assert answer.gpus == answer.pools.prefill_replicas + answer.pools.decode_replicas


def test_it_says_memory_bounds_where_sequences_are_long() -> None:
    answer = chat(rate=2, prompt=60_000, output=4000, ttft_p99=60, tpot_p99=1)
    assert answer.bound == "memory"


def test_it_chooses_a_tensor_size_that_fits() -> None:
    answer = chat(model="llama-3.1-70b", rate=20)
    assert answer.replica.parallel.tensor >= 4


def test_it_says_what_each_lever_changes_and_costs() -> None:
    found = {each.change: each for each in explore(chat())}
    assert found["FP8 weights"].gpus is not None
    assert found["FP8 weights"].gpus < chat().gpus
    assert found["twice the tensor parallelism"].replicas is not None
    assert all(each.price for each in found.values())


def test_it_says_by_how_much_a_model_does_not_fit_and_what_would() -> None:
    with pytest.raises(DoesNotFit) as caught:
        chat(model="llama-3.1-70b", tp=1)
    assert caught.value.short_bytes / 2**30 == pytest.approx(131.4 + 0.3 - 72, abs=0.5)
    assert "GiB short" in str(caught.value)
    assert "fp8 weights" in str(caught.value) or "int4 weights" in str(caught.value)
    assert "tensor parallel 2" in str(caught.value) or "tensor parallel 4" in str(caught.value)


def test_it_says_when_no_number_of_replicas_helps() -> None:
    with pytest.raises(OutOfReach, match="an idle replica already takes"):
        chat(tpot_p99=0.002, tp=1)
    with pytest.raises(OutOfReach, match="TTFT p99"):
        chat(ttft_p99=0.02, tp=1)


@pytest.mark.parametrize(
    "bad",
    [
        {"rate": 0}, {"rate": -5}, {"rate": 1e12}, {"rate": float("nan")}, {"prompt": 0}, {"prompt": 1e9},
        {"output": -1},
        {"cached": 1.5}, {"cached": -0.1}, {"ttft_p99": 0}, {"tpot_p99": -1}, {"tpot_p99": 3600}, {"tp": 3}, {"tp": 0},
        {"pp": 100}, {"memory_fraction": 2}, {"chunk": 1}, {"spare": -1}, {"gpu_hour": 0}, {"growth": 0},
        {"speculate": "0:0.7"}, {"speculate": "4:1.0"}, {"rate": "many"}, {"prompt": 131_000, "output": 5000},
        {"curve": "1,1"}, {"curve": ",".join(["0"] * 24)}, {"curve": ",".join(["2"] * 24)}, {"hosted_input": 1},
    ],
)  # fmt: skip
def test_it_refuses_zero_negative_and_absurd_values(bad: dict[str, object]) -> None:
    with pytest.raises(BadValue):
        chat(**bad)


def test_it_refuses_several_gpus_where_no_link_is_known() -> None:
    with pytest.raises(BadValue, match="interconnect"):
        chat(gpu="mi300x", tp=2)
    assert chat(gpu="mi300x", tp=2, interconnect=400).gpus > 0


@pytest.mark.parametrize("name", model_names())
def test_it_answers_for_every_model(name: str) -> None:
    """On eight H200, every bundled model fits in its published format and answers with finite figures."""
    heads = model(name).architecture.heads
    tensor = max(size for size in (1, 2, 4, 8) if heads % size == 0)
    answer = chat(model=name, gpu="h200", tp=tensor, rate=10, prompt=1000, output=200, tpot_p99=0.2, gpu_hour=3)
    assert answer.gpus >= tensor
    figures = [*asdict(answer.fleet.load).values(), *asdict(answer.memory).values(), answer.day.utilisation]
    assert all(math.isfinite(each) for each in figures if isinstance(each, float))
