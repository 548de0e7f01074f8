"""What each kind of attention keeps."""

import pytest

from engines.sizing import memory
from engines.sizing.accelerators import accelerator
from engines.sizing.cards import model
from engines.sizing.kv import kv_shape
from engines.sizing.replica import Parallel, make
from engines.sizing.tests.questions import replica


def test_it_keeps_a_latent_and_a_rotary_key_for_mla() -> None:
    """DeepSeek-V3: (512 + 64) x 2 bytes x 61 layers = 70,272 bytes a token."""
    assert kv_shape(model("deepseek-v3").architecture).per_token == 70_272


def test_it_bounds_a_window() -> None:
    shape = kv_shape(model("mistral-7b-v0.1").architecture)
    assert shape.sequence(4096) == shape.sequence(32_768) == 4096 * 131_072


def test_it_bounds_only_the_local_layers() -> None:
    """Gemma 3 27B: 10 of 62 layers grow, 52 keep 1,024 tokens; 2 x 16 x 128 x 2 = 8,192 bytes a layer and token."""
    shape = kv_shape(model("gemma-3-27b").architecture)
    assert shape.sequence(32_768) == 8192 * (10 * 32_768 + 52 * 1024)


def test_it_keeps_a_fixed_state_for_linear_layers() -> None:
    shape = kv_shape(model("qwen3.5-35b-a3b").architecture)
    assert shape.per_token == 2 * 2 * 256 * 2 * 10
    assert shape.state == 30 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2)
    assert shape.sequence(0) == shape.state


def test_it_keeps_one_head_for_mqa() -> None:
    assert kv_shape(model("gemma-2b").architecture).per_token == 2 * 1 * 256 * 2 * 18


def test_it_divides_grouped_heads_up_to_their_number_and_copies_beyond() -> None:
    four, eight, sixteen = (replica("llama-3.1-70b", "h200", tensor=each) for each in (4, 8, 16))
    assert memory.sequence_bytes(four, 1000) == 2 * memory.sequence_bytes(eight, 1000)
    assert memory.sequence_bytes(sixteen, 1000) == memory.sequence_bytes(eight, 1000)


def test_it_copies_the_latent_on_every_gpu_unless_attention_is_data_parallel() -> None:
    plain = replica("deepseek-v3", "h200", weights="fp8", tensor=8)
    spread = make(model("deepseek-v3"), accelerator("h200"), weights="fp8", parallel=Parallel(8, data_attention=True))
    assert memory.sequence_bytes(plain, 1000) == pytest.approx(8 * memory.sequence_bytes(spread, 1000))
    assert memory.plan(spread).weights > memory.plan(plain).weights
