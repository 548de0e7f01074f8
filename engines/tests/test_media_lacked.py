"""Which media an engine says that its model does not take. What it does not say is not known, which is no no."""

import json
from typing import Any

import pytest

from engines.protocols import PROTOCOLS

ALL = {"image", "audio", "video"}
PLAIN = {"has_image_understanding": False, "has_audio_understanding": False}


@pytest.mark.parametrize(
    ("engine", "about", "lacks"),
    [
        ("llamacpp", {"modalities": {"vision": False, "audio": False}}, ALL),
        ("llamacpp", {"modalities": {"vision": True, "audio": False}}, {"audio", "video"}),
        ("llamacpp", {"modalities": {"vision": True, "video": True, "audio": True}}, set()),
        ("llamacpp", {"modalities": {}}, {"video"}),
        ("llamacpp", {"model_path": "a server from before"}, set()),
        ("sglang", PLAIN, ALL),
        ("sglang", PLAIN | {"architectures": ["Qwen3ForCausalLM"]}, ALL),
        ("sglang", {"has_image_understanding": False}, {"image", "video"}),
        ("sglang", {"has_image_understanding": True, "has_audio_understanding": False}, set()),
        ("sglang", {"has_image_understanding": False, "has_audio_understanding": True}, set()),
        ("sglang", PLAIN | {"architectures": ["Qwen3OmniMoeForConditionalGeneration"]}, set()),
        ("sglang", PLAIN | {"architectures": ["Phi4MMForCausalLM"]}, set()),
        ("sglang", {"model_path": "a server from before", "architectures": None}, set()),
        ("vllm", {}, set()),
        ("openai", {}, set()),
    ],
)
def test_what_it_lacks_is_read_from_what_it_says(engine: str, about: dict[str, Any], lacks: set[str]) -> None:
    assert PROTOCOLS[engine].read_lacks(json.dumps(about).encode()) == lacks
