"""Parameters of an Architecture, part by part. A parameter is one number of the checkpoint."""

from dataclasses import dataclass

from engines.sizing.architecture import Architecture


@dataclass(frozen=True)
class Parameters:
    """Counts over the whole model. `expert` is one routed expert of one layer; `routed` all of them."""

    embedding: int
    head: int  # 0 when tied to the embedding: then the embedding is read as the head
    attention: int
    dense: int  # dense MLPs and shared experts: every token visits them
    router: int
    norms: int
    expert: int
    routed: int
    routed_active: int

    @property
    def total(self) -> int:
        parts = (self.embedding, self.head, self.attention, self.dense, self.router, self.norms, self.routed)
        return sum(parts)

    @property
    def active(self) -> int:
        """What one token touches, the embedding table counted whole (the habit of most publishers)."""
        return self.total - self.routed + self.routed_active

    @property
    def matrix(self) -> int:
        """Parameters that take part in a matrix product for one token, the output head left out: 2 FLOP each."""
        return self.attention + self.dense + self.router + self.routed_active

    @property
    def output(self) -> int:
        """Parameters of the output head as multiplied, tied or not."""
        return self.head or self.embedding


def count(arch: Architecture) -> Parameters:
    """Parameters from shapes: attention projections, gated MLPs (3 matrices), norms, embedding and head."""
    embedding = arch.vocabulary * arch.hidden
    dense = router = routed = routed_active = expert = attention = 0
    for layer in arch.layers:
        attention += _linear(arch) if layer.attention == "linear" else _softmax(arch)
        if not (layer.mixture and arch.mixture):
            dense += 3 * arch.hidden * arch.dense_intermediate
            continue
        mixture = arch.mixture
        bias = 2 * mixture.intermediate + arch.hidden if mixture.biased else 0
        expert = 3 * arch.hidden * mixture.intermediate + bias
        router += arch.hidden * mixture.experts + (mixture.experts if mixture.biased else 0)
        router += arch.hidden if mixture.shared_gate else 0
        dense += 3 * arch.hidden * mixture.shared_intermediate
        routed += mixture.experts * expert
        routed_active += mixture.per_token * expert
    return Parameters(
        embedding=embedding,
        head=0 if arch.tied else embedding,
        attention=attention,
        dense=dense,
        router=router,
        norms=(arch.norms_per_layer * len(arch.layers) + 1) * arch.hidden,
        expert=expert,
        routed=routed,
        routed_active=routed_active,
    )


def _softmax(arch: Architecture) -> int:
    """One layer's attention: q, k, v and output projections (grouped-query), or the low-rank ones of MLA."""
    if latent := arch.latent:
        key = latent.nope_dim + latent.rope_dim
        if latent.q_rank:
            query = arch.hidden * latent.q_rank + latent.q_rank + latent.q_rank * arch.heads * key
        else:
            query = arch.hidden * arch.heads * key
        down = arch.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank
        up = latent.kv_rank * arch.heads * (latent.nope_dim + latent.value_dim)
        return query + down + up + arch.heads * latent.value_dim * arch.hidden
    width, kv_width = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    query = arch.hidden * width * (2 if arch.output_gate else 1)
    weights = query + 2 * arch.hidden * kv_width + width * arch.hidden
    biases = (width + 2 * kv_width if arch.qkv_bias else 0) + (arch.hidden if arch.output_bias else 0)
    return weights + biases + (2 * arch.head_dim if arch.qk_norm else 0)


def _linear(arch: Architecture) -> int:
    """One gated delta-rule layer (transformers, Qwen3NextGatedDeltaNet): q, k, v, z; b, a; convolution; output."""
    if arch.linear is None:
        return 0
    shape = arch.linear
    keys, values = shape.key_heads * shape.key_dim, shape.value_heads * shape.value_dim
    inward = arch.hidden * (2 * keys + 2 * values) + arch.hidden * 2 * shape.value_heads
    return inward + (2 * keys + values) * shape.kernel + 2 * shape.value_heads + shape.value_dim + values * arch.hidden
