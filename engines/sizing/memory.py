"""What is left for KV on a GPU, and how many sequences fit in it."""

import math
from dataclasses import dataclass, replace

from engines.sizing.errors import BadValue, DoesNotFit
from engines.sizing.lengths import Workload
from engines.sizing.replica import Parallel, Replica
from engines.sizing.weights import FORMATS, weight_bytes

P99 = 2.3263  # the 0.99 quantile of the standard normal


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on the fullest GPU of a replica. capacity = reserve + weights + draft + kv."""

    capacity: float
    reserve: float
    weights: float
    draft: float
    kv: float


def plan(replica: Replica) -> MemoryPlan:
    """kv = memory x fraction - weights on that GPU.

    Tensor parallelism divides every matrix; with data-parallel attention only the experts are divided. Pipeline
    parallelism gives each stage ceil(layers / stages) layers, the embedding to the first and the head to the last.
    Raises DoesNotFit where nothing is left."""
    short = _plan(replica)
    if short.kv > _one(replica):
        return short
    budget = replica.accelerator.memory_bytes * replica.engine.memory_fraction
    raise DoesNotFit(
        model=f"{replica.card.name} in {replica.weights.name}",
        setting=f"{replica.accelerator.name}, {replica.parallel}",
        need_bytes=short.weights + short.draft + _one(replica),
        have_bytes=budget,
        remedies=_remedies(replica),
    )


def _one(replica: Replica) -> float:
    """The least worth serving: one sequence of 1,024 tokens."""
    return replica.kv_shape.sequence(1024) / replica.kv_ways * stage_share(replica)


def _plan(replica: Replica) -> MemoryPlan:
    budget = replica.accelerator.memory_bytes * replica.engine.memory_fraction
    bytes_, parallel = replica.weight_bytes, replica.parallel
    share = stage_share(replica)
    common_ways = 1 if parallel.data_attention else parallel.tensor
    ends = bytes_.embedding + bytes_.head if parallel.pipeline == 1 else max(bytes_.embedding, bytes_.head)
    weights = (bytes_.common * share + ends) / common_ways + bytes_.routed * share / parallel.tensor
    draft = replica.speculation.draft_cost * weights if replica.speculation else 0.0
    capacity = replica.accelerator.memory_bytes
    return MemoryPlan(capacity, capacity - budget, weights, draft, budget - weights - draft)


def stage_share(replica: Replica) -> float:
    """The fraction of the layers that the fullest pipeline stage holds."""
    layers = len(replica.card.architecture.layers)
    return math.ceil(layers / replica.parallel.pipeline) / layers


def sequence_bytes(replica: Replica, tokens: float) -> float:
    """KV bytes one sequence takes on the fullest GPU (an average over the group with data-parallel attention)."""
    return replica.kv_shape.sequence(tokens) * stage_share(replica) / replica.kv_ways


def fit_at(replica: Replica, tokens: float) -> int:
    """Sequences of exactly `tokens` that fit: floor(kv / bytes of one)."""
    return math.floor(plan(replica).kv / sequence_bytes(replica, tokens))


def fit_running(replica: Replica, workload: Workload, *, quantile: float = P99) -> int:
    """Running sequences that fit with 99% probability, up to the engine's limit.

    A running request seen at a random moment holds its prompt and what it has generated: mean and variance as in
    Workload.resident. The sum of n independent ones is normal for the n of interest, so n solves
    n x mean + z x deviation x sqrt(n) = room, a quadratic in sqrt(n)."""
    mean_tokens, deviation_tokens = workload.resident
    room = plan(replica).kv
    mean = sequence_bytes(replica, mean_tokens)
    upper = sequence_bytes(replica, mean_tokens + deviation_tokens)
    deviation = max(0.0, upper - mean)
    root = (-quantile * deviation + math.sqrt((quantile * deviation) ** 2 + 4 * mean * room)) / (2 * mean)
    return max(0, min(math.floor(root * root), replica.engine.max_running))


def _remedies(replica: Replica) -> tuple[str, ...]:
    """Single changes that would make it fit, smallest first."""
    found = []
    for name, form in FORMATS.items():
        if form.experts_only and replica.card.architecture.mixture is None:
            continue
        smaller = replace(replica, weights=form)
        if weight_bytes(smaller.parameters, form).total < replica.weight_bytes.total and _roomy(smaller):
            found.append(f"{name} weights")
    for tensor in (2, 4, 8, 16, 32):
        if tensor <= replica.parallel.tensor:
            continue
        try:
            wider = replace(
                replica, parallel=Parallel(tensor, replica.parallel.pipeline, replica.parallel.data_attention)
            )
        except BadValue:
            continue
        if _roomy(wider):
            found.append(f"tensor parallel {tensor} ({wider.gpus} GPUs)")
            break
    return tuple(found[:4])


def _roomy(replica: Replica) -> bool:
    return _plan(replica).kv > _one(replica)
