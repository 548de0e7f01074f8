"""The time of one engine step: some sequences each decoding a token, some prompt tokens being prefilled, or both.

A step runs kernels one after another, so its time is a sum; each kernel is bound by memory or by arithmetic, so each
term is a maximum (the roofline: Williams et al., CACM 52(4), 2009):

  matrices       max(FLOP / (peak x efficiency), weight bytes / (bandwidth x efficiency))
  attention      max(KV bytes / (bandwidth x efficiency), FLOP / (peak x efficiency))
  communication  all-reduces of tensor parallelism, hand-overs of pipeline parallelism
  overhead       launches, scheduling, sampling
"""

from dataclasses import dataclass

from engines.sizing.replica import Replica

FUSED_BYTES = 2  # activations travel in bf16


@dataclass(frozen=True)
class StepLoad:
    """`sequences` decode `tokens_each` tokens (more than 1: a speculative verification) at `context` tokens of
    context; `prefill` prompt tokens are computed, each attending to `prefill_context` tokens on average."""

    sequences: float = 0.0
    context: float = 0.0
    tokens_each: float = 1.0
    prefill: float = 0.0
    prefill_context: float = 0.0

    @property
    def tokens(self) -> float:
        return self.sequences * self.tokens_each + self.prefill


@dataclass(frozen=True)
class StepTime:
    """Seconds by cause; `bound` names the largest: bandwidth, compute or latency (communication and overhead)."""

    matrix_compute: float
    matrix_bandwidth: float
    attention_compute: float
    attention_bandwidth: float
    communication: float
    overhead: float

    @property
    def total(self) -> float:
        matrices = max(self.matrix_compute, self.matrix_bandwidth)
        attention = max(self.attention_compute, self.attention_bandwidth)
        return matrices + attention + self.communication + self.overhead

    @property
    def bound(self) -> str:
        by_memory = self.matrix_compute < self.matrix_bandwidth, self.attention_compute < self.attention_bandwidth
        shares = {
            "bandwidth": by_memory[0] * self.matrix_bandwidth + by_memory[1] * self.attention_bandwidth,
            "compute": (not by_memory[0]) * self.matrix_compute + (not by_memory[1]) * self.attention_compute,
            "latency": self.communication + self.overhead,
        }
        return max(shares, key=lambda name: shares[name])


def step(replica: Replica, load: StepLoad) -> StepTime:
    """Seconds of one step on `replica`. With pipeline parallelism this is a token's way through every stage."""
    engine, accelerator, parallel = replica.engine, replica.accelerator, replica.parallel
    tensor, arch = parallel.tensor, replica.card.architecture
    bandwidth = accelerator.bandwidth * engine.bandwidth_efficiency
    form, peak = accelerator.rate(replica.weights.compute)
    plain_form, plain_peak = accelerator.rate("bf16")
    fast, plain = peak * engine.compute_efficiency[form], plain_peak * engine.compute_efficiency[plain_form]
    layers = len(arch.layers)
    collectives = 2 * layers if tensor > 1 else 0
    return StepTime(
        matrix_compute=matrix_flop(replica, load, fast, plain) / tensor,
        matrix_bandwidth=weight_bytes_read(replica, load.tokens) / bandwidth,
        attention_compute=attention_flop(replica, load) / (plain * tensor),
        attention_bandwidth=kv_bytes_read(replica, load) / bandwidth,
        communication=collectives * _all_reduce(replica, load.tokens)
        + (parallel.pipeline - 1) * _hand_over(replica, load.tokens),
        overhead=engine.step_overhead + layers * engine.layer_overhead,
    )


def matrix_flop(replica: Replica, load: StepLoad, fast: float, plain: float) -> float:
    """GPU-seconds of matrix products: 2 FLOP per active parameter and token (Kaplan et al., arXiv:2001.08361,
    section 2.1), the quantised part at rate `fast` and the rest at `plain`; the head only for tokens to sample."""
    parameters, form = replica.parameters, replica.weights
    experts, common = parameters.routed_active, parameters.matrix - parameters.routed_active
    slow = common if form.experts_only else 0
    quick = 0 if form.experts_only else common
    sampled = load.sequences * load.tokens_each
    routed = experts / (fast * replica.engine.expert_efficiency)
    return 2 * (load.tokens * (routed + quick / fast + slow / plain) + sampled * parameters.output / plain)


def weight_bytes_read(replica: Replica, tokens: float) -> float:
    """Weight bytes each GPU streams in a step: everything dense once, and the experts that any token picked.

    With E experts, k per token and n tokens choosing evenly, E x (1 - (1 - k/E)^n) are picked: real routing is
    uneven, so this is the most that could be read."""
    bytes_, mixture = replica.weight_bytes, replica.card.architecture.mixture
    head = bytes_.head or bytes_.embedding
    touched = 1 - (1 - mixture.per_token / mixture.experts) ** tokens if mixture else 0.0
    common_ways = 1 if replica.parallel.data_attention else replica.parallel.tensor
    return (bytes_.common + head) / common_ways + bytes_.routed * touched / replica.parallel.tensor


def kv_bytes_read(replica: Replica, load: StepLoad) -> float:
    """KV bytes each GPU reads for the decoding sequences, once per step however many tokens each verifies. A linear
    layer's state is read and written."""
    if not load.sequences:
        return 0.0
    shape = replica.kv_shape
    return load.sequences * (shape.sequence(load.context) + shape.state) / replica.kv_ways


def attention_flop(replica: Replica, load: StepLoad) -> float:
    """FLOP of scores and weighted values over the model for all tokens of the step."""
    decode = load.sequences * load.tokens_each * _token_attention(replica, load.context, absorbed=True)
    return decode + load.prefill * _token_attention(replica, load.prefill_context, absorbed=False)


def _token_attention(replica: Replica, context: float, *, absorbed: bool) -> float:
    """One token against `context` others: 4 x heads x head_dim x context per layer (2 products, 2 FLOP each).

    MLA decodes in its latent space ("absorbed", arXiv:2405.04434): heads x (2 kv_rank + rope) x 2 x context; it
    prefills as ordinary heads of (nope + rope) and value width. Windows bound the context. A linear layer updates
    and reads its state: about 6 x value_heads x key_dim x value_dim."""
    arch = replica.card.architecture
    if latent := arch.latent:
        width = (
            2 * latent.kv_rank + latent.rope_dim if absorbed else latent.nope_dim + latent.rope_dim + latent.value_dim
        )
        per_context = 2.0 * arch.heads * width
    else:
        per_context = 4.0 * arch.heads * arch.head_dim
    flop = 0.0
    for kind, window, layers in arch.spans:
        if kind == "linear" and arch.linear:
            flop += layers * 6.0 * arch.linear.value_heads * arch.linear.key_dim * arch.linear.value_dim
        else:
            flop += layers * per_context * (min(context, window) if window else context)
    return flop


def _all_reduce(replica: Replica, tokens: float) -> float:
    """A ring all-reduce of tokens x hidden x 2 bytes: latency + 2 (n-1)/n x bytes / link (Patarasuk & Yuan, JPDC
    69(2), 2009). Two a layer in Megatron's tensor parallelism (arXiv:1909.08053). The dispatch and gather of data-
    parallel attention move about as much."""
    link, ways = replica.accelerator.interconnect, replica.parallel.tensor
    if link is None or ways == 1:
        return 0.0
    size = tokens * replica.card.architecture.hidden * FUSED_BYTES
    moved = 2 * (ways - 1) / ways * size / (link * replica.engine.interconnect_efficiency)
    return replica.engine.collective_latency + moved


def _hand_over(replica: Replica, tokens: float) -> float:
    """Sending a stage's activations to the next: latency + tokens x hidden x 2 bytes / link."""
    link = replica.accelerator.interconnect
    if link is None:
        return 0.0
    size = tokens * replica.card.architecture.hidden * FUSED_BYTES
    return replica.engine.collective_latency + size / (link * replica.engine.interconnect_efficiency)
