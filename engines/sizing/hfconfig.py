"""Reading a Hugging Face config.json into an Architecture.

Only model types whose layout is known are read: for another one the parameter count would be a guess, so it is
refused. Each rule follows the publisher's own modelling code in `transformers`, named where it is not obvious.
"""

from collections.abc import Mapping
from typing import Any

from engines.sizing.architecture import Architecture, Attention, Latent, Layer, Linear, Mixture
from engines.sizing.checks import within
from engines.sizing.errors import UnknownArchitecture

PLAIN = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"}
EXPERTS = {
    "mixtral",
    "qwen3_moe",
    "gpt_oss",
    "llama4_text",
    "deepseek_v2",
    "deepseek_v3",
    "kimi_k2",
    "qwen3_5_moe_text",
}
READABLE = PLAIN | EXPERTS
LATENT = {"deepseek_v2", "deepseek_v3", "kimi_k2"}
BIASED_QKV = {"qwen2"}
QK_NORM = {"qwen3", "qwen3_moe", "gemma3_text", "qwen3_5_moe_text"}
TIED_BY_DEFAULT = {"gemma", "gemma2", "gemma3_text"}


def read(config: Mapping[str, Any]) -> Architecture:
    """The architecture a config.json describes. Raises UnknownArchitecture, or BadValue for a number out of range."""
    text: Mapping[str, Any] = config.get("text_config") or config
    kind = str(text.get("model_type") or config.get("model_type") or "")
    if kind not in READABLE:
        raise UnknownArchitecture(f"model_type {kind!r} is not one this reads; it reads {', '.join(sorted(READABLE))}")
    layer_count = _whole(text, "num_hidden_layers", 1, 1000)
    heads = _whole(text, "num_attention_heads", 1, 4096)
    kv_heads = int(within("num_key_value_heads", text.get("num_key_value_heads") or heads, 1, heads))
    hidden = _whole(text, "hidden_size", 8, 1_000_000)
    latent = _latent(text) if kind in LATENT else None
    mixture = _mixture(text, kind)
    return Architecture(
        model_type=kind,
        hidden=hidden,
        vocabulary=_whole(text, "vocab_size", 16, 10_000_000),
        tied=bool(text.get("tie_word_embeddings", kind in TIED_BY_DEFAULT)),
        layers=tuple(
            Layer(*_attention(text, kind, index), mixture=mixture is not None and _is_mixture(text, kind, index))
            for index in range(layer_count)
        ),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=int(text.get("head_dim") or hidden // heads),
        dense_intermediate=int(text.get("intermediate_size_mlp") or text.get("intermediate_size") or 0),
        max_context=int(text.get("max_position_embeddings") or 0),
        qkv_bias=kind in BIASED_QKV or bool(text.get("attention_bias")),
        output_bias=bool(text.get("attention_bias")) and kind not in BIASED_QKV,
        qk_norm=kind in QK_NORM,
        output_gate=bool(text.get("attn_output_gate")),
        norms_per_layer=4 if kind in {"gemma2", "gemma3_text"} else 2,
        latent=latent,
        linear=_linear(text),
        mixture=mixture,
    )


def _whole(config: Mapping[str, Any], key: str, low: int, high: int) -> int:
    if config.get(key) is None:
        raise UnknownArchitecture(f"config.json has no {key}")
    return int(within(key, config[key], low, high))


def _attention(text: Mapping[str, Any], kind: str, index: int) -> tuple[Attention, int | None]:
    window = text.get("sliding_window")
    if types := text.get("layer_types"):
        if index >= len(types):
            raise UnknownArchitecture(f"layer_types names {len(types)} layers, fewer than num_hidden_layers")
        word = types[index]
        if word == "linear_attention":
            return "linear", None
        return ("window", int(window)) if word == "sliding_attention" and window else ("full", None)
    if kind == "llama4_text":
        # Llama4TextConfig: no_rope_layer_interval = 4; the fourth of each four attends to everything, the others
        # within chunks of attention_chunk_size.
        chunk = text.get("attention_chunk_size")
        return ("full", None) if (index + 1) % 4 == 0 or not chunk else ("window", int(chunk))
    if kind == "gemma2" and window:  # Gemma2Config: every second layer slides, beginning with the first
        return ("window", int(window)) if (index + 1) % 2 else ("full", None)
    if kind == "gemma3_text" and window:  # Gemma3TextConfig: five local layers, then a global one
        pattern = int(text.get("sliding_window_pattern") or text.get("_sliding_window_pattern") or 6)
        return ("window", int(window)) if (index + 1) % pattern else ("full", None)
    if kind in {"qwen2", "qwen3", "qwen3_moe"}:  # the window counts only where use_sliding_window says so
        slides = text.get("use_sliding_window") and index >= int(text.get("max_window_layers") or 0)
        return ("window", int(window)) if slides and window else ("full", None)
    return ("window", int(window)) if window else ("full", None)


def _is_mixture(text: Mapping[str, Any], kind: str, index: int) -> bool:
    if kind in LATENT:
        return (
            index >= int(text.get("first_k_dense_replace") or 0) and index % int(text.get("moe_layer_freq") or 1) == 0
        )
    if kind == "llama4_text":  # Llama4TextConfig: layers step-1, 2*step-1, ...
        step = int(text.get("interleave_moe_layer_step") or 1)
        return (index + 1) % step == 0
    if index in (text.get("mlp_only_layers") or []):
        return False
    return (index + 1) % int(text.get("decoder_sparse_step") or 1) == 0


def _mixture(text: Mapping[str, Any], kind: str) -> Mixture | None:
    experts = text.get("n_routed_experts") or text.get("num_local_experts") or text.get("num_experts")
    if not experts:
        return None
    if kind not in EXPERTS:
        raise UnknownArchitecture(f"a mixture of experts in model_type {kind!r} is not one this reads")
    width = int(text.get("moe_intermediate_size") or text["intermediate_size"])
    shared = int(text.get("n_shared_experts") or 0) * width
    if kind == "llama4_text":
        shared = width
    return Mixture(
        experts=int(within("experts", int(experts), 2, 100_000)),
        per_token=int(within("num_experts_per_tok", text["num_experts_per_tok"], 1, int(experts))),
        intermediate=width,
        shared_intermediate=int(text.get("shared_expert_intermediate_size") or shared),
        shared_gate=bool(text.get("shared_expert_intermediate_size")),
        biased=kind == "gpt_oss",
    )


def _latent(text: Mapping[str, Any]) -> Latent:
    return Latent(
        q_rank=text.get("q_lora_rank"),
        kv_rank=_whole(text, "kv_lora_rank", 1, 100_000),
        nope_dim=_whole(text, "qk_nope_head_dim", 1, 10_000),
        rope_dim=_whole(text, "qk_rope_head_dim", 1, 10_000),
        value_dim=_whole(text, "v_head_dim", 1, 10_000),
    )


def _linear(text: Mapping[str, Any]) -> Linear | None:
    if "linear_attention" not in (text.get("layer_types") or []):
        return None
    return Linear(
        key_heads=_whole(text, "linear_num_key_heads", 1, 4096),
        value_heads=_whole(text, "linear_num_value_heads", 1, 4096),
        key_dim=_whole(text, "linear_key_head_dim", 1, 4096),
        value_dim=_whole(text, "linear_value_head_dim", 1, 4096),
        kernel=_whole(text, "linear_conv_kernel_dim", 1, 64),
    )
