"""Bytes of key-value cache."""

from dataclasses import dataclass

from engines.sizing.architecture import Architecture
from engines.sizing.checks import known

FORMATS = {"bf16": 2.0, "fp8": 1.0}
STATE_BYTES = 4.0  # linear-attention states are kept in fp32 (Qwen3.5 config.json, mamba_ssm_dtype)


@dataclass(frozen=True)
class KvShape:
    """Bytes the cache of one sequence takes over the whole model.

    `growing` per token; `windows` as (tokens, bytes per token) pairs, bounded by the window; `state` once."""

    growing: float
    windows: tuple[tuple[int, float], ...]
    state: float

    @property
    def per_token(self) -> float:
        """Bytes a token adds while it is inside every window: the whiteboard figure."""
        return self.growing + sum(each for _, each in self.windows)

    def sequence(self, tokens: float) -> float:
        """Bytes of a sequence of `tokens`: growing x tokens + windows, each bounded by its width, + state."""
        return self.growing * tokens + sum(min(tokens, width) * each for width, each in self.windows) + self.state


def kv_format(name: str) -> str:
    return known("KV format", name, FORMATS)


def kv_shape(arch: Architecture, form: str = "bf16") -> KvShape:
    """Per layer and token: 2 (key and value) x kv_heads x head_dim x bytes for grouped-query attention (MHA and MQA
    are its ends; Ainslie et al., arXiv:2305.13245); (kv_rank + rope_dim) x bytes for MLA (arXiv:2405.04434, section
    2.1.4). A window layer keeps at most its window (Mistral 7B, arXiv:2310.06825, section 2); a linear one keeps
    value_heads x key_dim x value_dim numbers and the convolution's last inputs, whatever the length."""
    width = FORMATS[form]
    if arch.latent:
        layer_token = (arch.latent.kv_rank + arch.latent.rope_dim) * width
    else:
        layer_token = 2 * arch.kv_heads * arch.head_dim * width
    windows: dict[int, float] = {}
    growing = state = 0.0
    for layer in arch.layers:
        if layer.attention == "linear" and arch.linear:
            shape = arch.linear
            keys, values = shape.key_heads * shape.key_dim, shape.value_heads * shape.value_dim
            state += shape.value_heads * shape.key_dim * shape.value_dim * STATE_BYTES
            state += (2 * keys + values) * (shape.kernel - 1) * 2
        elif layer.attention == "window" and layer.window:
            windows[layer.window] = windows.get(layer.window, 0.0) + layer_token
        else:
            growing += layer_token
    return KvShape(growing, tuple(sorted(windows.items())), state)
