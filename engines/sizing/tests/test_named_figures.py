"""The figures an engineer knows by heart must come out."""

from dataclasses import replace

import pytest

from engines.sizing import cost, decode, memory
from engines.sizing.cards import model
from engines.sizing.kv import kv_shape
from engines.sizing.tests.questions import replica

KIB, MIB, GIB = 2**10, 2**20, 2**30


def test_it_keeps_131072_bytes_per_token_of_llama_3_1_8b() -> None:
    assert kv_shape(model("llama-3.1-8b").architecture).per_token == 131_072


@pytest.mark.parametrize(("tokens", "size"), [(4096, 512 * MIB), (8192, GIB), (131_072, 16 * GIB)])
def test_it_sizes_a_sequence(tokens: int, size: int) -> None:
    assert kv_shape(model("llama-3.1-8b").architecture).sequence(tokens) == size


def test_it_keeps_four_times_as_much_without_grouped_heads() -> None:
    arch = model("llama-3.1-8b").architecture
    assert kv_shape(replace(arch, kv_heads=arch.heads)).per_token == 512 * KIB


def test_it_halves_the_cache_in_fp8() -> None:
    assert kv_shape(model("llama-3.1-8b").architecture, "fp8").per_token == 65_536


def test_it_fits_110_to_120_requests_of_4k_on_80_gb() -> None:
    on_h100 = replica()
    assert 55 <= memory.plan(on_h100).kv / GIB <= 60
    assert 110 <= memory.fit_at(on_h100, 4096) <= 120


def test_it_gives_one_128k_document_the_space_of_32_chats_of_4k() -> None:
    shape = replica().kv_shape
    assert shape.sequence(131_072) == 32 * shape.sequence(4096)


def test_it_prices_a_million_tokens() -> None:
    assert cost.per_million(2.50, 2500) == pytest.approx(0.2778, abs=5e-5)
    assert cost.per_million(2.50, 2500, 0.1) == pytest.approx(2.778, abs=5e-4)


def test_it_decodes_600_tokens_at_30_ms_in_18_seconds() -> None:
    assert decode.decode_seconds(600, 0.030) == pytest.approx(18)
