"""Every bundled card is sourced, and its arithmetic agrees with what its publisher says."""

import json
from pathlib import Path

import pytest

from engines.sizing.accelerators import accelerator, accelerator_names
from engines.sizing.cards import model, model_from_config, model_names
from engines.sizing.errors import UnknownArchitecture, UnknownName
from engines.sizing.parameters import count
from engines.sizing.weights import weight_bytes, weight_format


@pytest.mark.parametrize("name", model_names())
def test_it_counts_the_published_parameters(name: str) -> None:
    card = model(name)
    counts = count(card.architecture)
    assert card.published_total is not None
    assert counts.total == pytest.approx(card.published_total, rel=card.published_tolerance)
    if card.published_active is not None:
        active = counts.active - (0 if card.active_counts_embedding else counts.embedding)
        assert active == pytest.approx(card.published_active, rel=card.active_tolerance)


@pytest.mark.parametrize("name", model_names())
def test_it_names_a_source_for_every_model(name: str) -> None:
    card = model(name)
    assert len(card.source) > 20
    assert len(card.published_source) > 10


@pytest.mark.parametrize("name", accelerator_names())
def test_it_names_a_source_for_every_accelerator(name: str) -> None:
    part = accelerator(name)
    assert len(part.source) > 20
    assert part.flops["bf16"] > 0
    assert part.flops["bf16"] / part.bandwidth > 50  # FLOP a byte: dense figures, of the right order
    assert part.flops["bf16"] / part.bandwidth < 500


def test_it_has_about_twenty_models_of_every_kind_of_attention() -> None:
    kinds = {model(name).architecture.attention_kind for name in model_names()}
    assert len(model_names()) >= 20
    assert {"MHA", "GQA", "MQA", "MLA"} <= kinds
    assert {
        "GQA with sliding window",
        "GQA with sliding window in some layers",
        "GQA hybrid with linear attention",
    } <= kinds


def test_it_weighs_the_published_gpt_oss_checkpoint() -> None:
    """gpt-oss model card, arXiv:2508.10925, table 1: checkpoints of 60.8 and 12.8 GiB."""
    for name, size in (("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)):
        total = weight_bytes(count(model(name).architecture), weight_format("mxfp4")).total
        assert total / 2**30 == pytest.approx(size, rel=0.01)


def test_it_forgives_case_and_aliases() -> None:
    assert model("Meta-Llama/Llama-3.3-70B").name == "llama-3.1-70b"
    assert accelerator("H100_SXM").name == "h100"


def test_it_lists_near_names_for_an_unknown_one() -> None:
    with pytest.raises(UnknownName, match=r"llama-3\.1-8b"):
        model("lama-3.1-8b")
    with pytest.raises(UnknownName, match=r"did you mean .*h100"):
        accelerator("h1000")
    with pytest.raises(UnknownName, match="known: "):
        accelerator("zzz")


def test_it_reads_a_config_json(tmp_path: Path) -> None:
    config = json.loads((Path(__file__).parents[1] / "cards" / "models" / "qwen3-8b.json").read_text())["config"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert model_from_config(path).architecture == model("qwen3-8b").architecture


def test_it_refuses_a_layout_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "mamba2", "hidden_size": 4096}))
    with pytest.raises(UnknownArchitecture, match="mamba2"):
        model_from_config(path)
    path.write_text(json.dumps({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}))
    with pytest.raises(UnknownArchitecture, match="num_hidden_layers"):
        model_from_config(path)
