"""The shape of a decoder, as far as memory and time depend on it."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Attention = Literal["full", "window", "linear"]


@dataclass(frozen=True)
class Layer:
    """One decoder layer. `window` (tokens) bounds what a "window" layer keeps and reads."""

    attention: Attention
    window: int | None
    mixture: bool  # a mixture-of-experts MLP instead of a dense one


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434 section 2.1): the cache holds one compressed
    vector of kv_rank plus one rotary key of rope_dim per token and layer, shared by all heads."""

    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True)
class Linear:
    """Gated delta-rule linear attention (Qwen3-Next, Qwen3.5): a state of fixed size instead of a growing cache."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int


@dataclass(frozen=True)
class Mixture:
    """Mixture of experts: each token visits `per_token` of `experts` gated MLPs of width `intermediate`, and the
    shared expert(s), `shared_intermediate` wide together (0: none)."""

    experts: int
    per_token: int
    intermediate: int
    shared_intermediate: int
    shared_gate: bool
    biased: bool


@dataclass(frozen=True)
class Architecture:
    """A decoder-only language model. Vision towers, draft heads and multi-token-prediction layers are not counted."""

    model_type: str
    hidden: int
    vocabulary: int
    tied: bool
    layers: tuple[Layer, ...]
    heads: int
    kv_heads: int
    head_dim: int
    dense_intermediate: int
    max_context: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    output_gate: bool = False
    norms_per_layer: int = 2
    latent: Latent | None = None
    linear: Linear | None = None
    mixture: Mixture | None = None

    @property
    def attention_kind(self) -> str:
        """The word for how keys and values are shared: MLA, MHA, MQA or GQA, with what bounds them."""
        if self.latent:
            return "MLA"
        kind = "MHA" if self.kv_heads == self.heads else "MQA" if self.kv_heads == 1 else "GQA"
        kinds = {layer.attention for layer in self.layers}
        if "linear" in kinds:
            return f"{kind} hybrid with linear attention"
        if "window" in kinds:
            return f"{kind} with sliding window" + (" in some layers" if "full" in kinds else "")
        return kind

    @cached_property
    def spans(self) -> tuple[tuple[Attention, int | None, int], ...]:
        """Layers that attend alike: kind, window, how many."""
        alike = Counter((each.attention, each.window) for each in self.layers)
        return tuple((*key, number) for key, number in alike.items())

    def count(self, attention: Attention) -> int:
        return sum(layer.attention == attention for layer in self.layers)
