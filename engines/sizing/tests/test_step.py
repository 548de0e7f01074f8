"""Step times: what bounds them, and how they move."""

import pytest

from engines.sizing import prefill
from engines.sizing.decode import decode_step, token_time
from engines.sizing.replica import Speculation
from engines.sizing.step import StepLoad, step, weight_bytes_read
from engines.sizing.tests.questions import replica


def test_it_decodes_one_sequence_at_the_speed_of_reading_the_weights() -> None:
    one = decode_step(replica(), 1, 1000)
    read = 15.0e9 + 1000 * 131_072
    assert one.bound == "bandwidth"
    assert one.matrix_bandwidth + one.attention_bandwidth == pytest.approx(read / (3.35e12 * 0.8), rel=0.01)


def test_it_prefills_at_the_speed_of_arithmetic() -> None:
    read = prefill.chunk_step(replica(), 2000, 0, tokens=2000)
    assert read.bound == "compute"
    assert read.matrix_compute == pytest.approx(2 * 6.98e9 * 2000 / (989e12 * 0.65), rel=0.01)


def test_it_reads_more_cache_for_longer_contexts_and_larger_batches() -> None:
    assert decode_step(replica(), 64, 8000).total > decode_step(replica(), 64, 1000).total
    assert decode_step(replica(), 128, 1000).total > decode_step(replica(), 64, 1000).total


def test_it_decodes_more_tokens_a_second_in_larger_batches() -> None:
    speeds = [size / token_time(replica(), size, 1000) for size in (1, 8, 64, 256)]
    assert speeds == sorted(speeds)


def test_it_reads_prompts_in_chunks_at_little_cost() -> None:
    whole = prefill.alone(replica(), 8000)
    assert whole == pytest.approx(4 * prefill.alone(replica(), 2000), rel=0.15)


def test_it_skips_what_is_cached_but_still_attends_to_it() -> None:
    cold, warm, short = (
        prefill.alone(replica(), 8000),
        prefill.alone(replica(), 800, 7200),
        prefill.alone(replica(), 800),
    )
    assert short < warm < cold / 5


def test_it_divides_bandwidth_over_tensor_parallel_gpus_and_pays_for_talking() -> None:
    one, two = decode_step(replica(), 8, 1000), decode_step(replica(tensor=2), 8, 1000)
    assert two.matrix_bandwidth == pytest.approx(one.matrix_bandwidth / 2)
    assert two.communication > one.communication == 0
    assert one.total / 2 < two.total < one.total


def test_it_does_not_shorten_a_token_with_pipeline_stages() -> None:
    one, two = decode_step(replica(), 1, 1000), decode_step(replica(pipeline=2), 2, 1000)
    assert two.total == pytest.approx(one.total, rel=0.05)


def test_it_reads_only_the_experts_picked() -> None:
    sparse = replica("qwen3-30b-a3b", "h100")
    all_experts = sparse.weight_bytes.routed
    dense = weight_bytes_read(sparse, 0)
    assert weight_bytes_read(sparse, 1) - dense == pytest.approx(all_experts * 8 / 128)
    assert weight_bytes_read(sparse, 1000) - dense == pytest.approx(all_experts)


def test_it_saves_bandwidth_but_no_arithmetic_with_int4() -> None:
    plain, small = replica(), replica(weights="int4")
    assert decode_step(small, 1, 1000).total < 0.6 * decode_step(plain, 1, 1000).total
    assert prefill.alone(small, 4000) == pytest.approx(prefill.alone(plain, 4000))


def test_it_multiplies_fp8_weights_as_bf16_where_there_are_no_fp8_units() -> None:
    load = StepLoad(prefill=4096)
    on_a100 = step(replica(gpu="a100", weights="fp8"), load).matrix_compute
    assert on_a100 == pytest.approx(step(replica(gpu="a100"), load).matrix_compute)
    assert step(replica(weights="fp8"), load).matrix_compute < step(replica(), load).matrix_compute


def test_it_speculates_to_advantage_at_small_batches_only() -> None:
    guess = Speculation(4, 0.7)
    assert guess.tokens_per_step == pytest.approx(2.7731)
    plain, guessing = replica(weights="fp8"), replica(weights="fp8", speculation=guess)
    assert token_time(guessing, 1, 500) < 0.6 * token_time(plain, 1, 500)
    assert token_time(guessing, 1500, 100) > token_time(plain, 1500, 100)
    assert token_time(replica(speculation=Speculation(4, 0.0)), 1, 500) > token_time(replica(), 1, 500)
