"""The time of a step, from `Costs`; and `Costs` from a sizing of real hardware."""

from engines.sizing import memory
from engines.sizing.replica import Replica
from engines.sizing.step import StepLoad, step
from headrace_dev.simulator.fleet.profile import Costs, Profile

_FAR = 1000  # tokens of context at which the linear terms are read off


def seconds(costs: Costs, *, prefill: int, pairs: float, decoding: int, context: int, prefix: int = 0) -> float:
    """`prefill` prompt tokens, attending to `pairs` in sum, after `prefix` tokens in sum; `decoding` requests over
    `context` tokens in sum."""
    matrices = max(costs.weights, costs.token * (prefill + decoding))
    attending = costs.context * context + costs.attention * pairs + costs.prefix * prefix
    return costs.step + matrices + costs.sequence * decoding + attending


def pairs(start: int, end: int) -> float:
    """What the prompt tokens [start, end) attend to, themselves excepted."""
    return (end - start) * (start + end) / 2


def sized(replica: Replica) -> Costs:
    """The costs of engines.sizing's roofline, for a dense model on one GPU, where they have this form.

    Decoding is taken to be bound by bandwidth and reading prompts by arithmetic. Raises ValueError for another replica.
    """
    arch = replica.card.architecture
    plain = replica.gpus == 1 and not replica.speculation and not arch.mixture and not arch.latent
    if not plain or any(kind == "linear" or window for kind, window, _ in arch.spans):
        raise ValueError(f"{replica.card.name}: only dense models with full attention on one GPU have these costs")
    nothing = step(replica, StepLoad())
    decode = step(replica, StepLoad(sequences=1, context=_FAR))
    prefill = step(replica, StepLoad(prefill=1, prefill_context=_FAR))
    return Costs(
        step=nothing.overhead,
        weights=nothing.matrix_bandwidth,
        token=prefill.matrix_compute,
        context=decode.attention_bandwidth / _FAR,
        attention=prefill.attention_compute / _FAR,
    )


def sized_profile(replica: Replica, *, name: str, page: int = 16, max_running: int = 256) -> Profile:
    """A replica as engines.sizing sees it: its costs, its room for KV and its chunk. Raises ValueError as `sized`."""
    return Profile(
        name=name,
        source=f"engines/sizing: {replica.card.name} on {replica.accelerator.name}, one GPU",
        costs=sized(replica),
        kv_tokens=int(memory.plan(replica).kv / memory.sequence_bytes(replica, 1)),
        page=page,
        chunk=replica.engine.chunk,
        max_running=max_running,
    )
