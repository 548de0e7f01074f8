"""The answer's reasoning, as a person would write it on a whiteboard."""

import math

from engines.sizing import prefill, step
from engines.sizing.answer import Answer
from engines.sizing.decode import tokens_per_second
from engines.sizing.disaggregation import Pools
from engines.sizing.step import StepLoad

GIB = 2**30


def lines(answer: Answer) -> list[str]:
    """The steps as sentences, "Subject: what and why"."""
    return [f"{subject}: {sentence}" for subject, sentence in steps(answer)]


def steps(answer: Answer) -> list[tuple[str, str]]:
    """(subject, sentence) pairs, in the order one would work."""
    work = [
        ("Weights", _weights(answer)),
        ("KV cache", _cache(answer)),
        ("Room", _room(answer)),
        ("Prefill", _prefill(answer)),
        ("Decode", _decode(answer)),
    ]
    if answer.pools:
        return [*work, ("Prefill pool", _prefill_pool(answer.pools)), ("Decode pool", _decode_pool(answer.pools))]
    return [*work, ("Together", _together(answer)), ("Fleet", _fleet(answer))]


def _weights(answer: Answer) -> str:
    replica, parameters = answer.replica, answer.replica.parameters
    active = f", {parameters.active / 1e9:.2f} B active a token" if parameters.routed else ""
    each = f", {answer.memory.weights / GIB:.1f} GiB on each of {replica.gpus} GPUs" if replica.gpus > 1 else ""
    return (
        f"{parameters.total / 1e9:.2f} B parameters{active} in {replica.weights.name}: "
        f"{replica.weight_bytes.total / GIB:.1f} GiB{each}."
    )


def _cache(answer: Answer) -> str:
    arch, shape = answer.replica.card.architecture, answer.replica.kv_shape
    if arch.latent:
        how = f"({arch.latent.kv_rank} + {arch.latent.rope_dim}) numbers a layer"
    else:
        how = f"2 x {arch.kv_heads} heads x {arch.head_dim} numbers a layer"
    layers = len(arch.layers) - arch.count("linear")
    bounded = f"; {arch.count('window')} of {len(arch.layers)} layers keep only their window" if shape.windows else ""
    state = (
        f"; {arch.count('linear')} linear layers keep {shape.state / 2**20:.1f} MiB a sequence" if shape.state else ""
    )
    return (
        f"{arch.attention_kind} in {answer.replica.kv}: {how} x {layers} layers = "
        f"{shape.per_token:,.0f} bytes a token{bounded}{state}."
    )


def _room(answer: Answer) -> str:
    engine, plan, workload = answer.replica.engine, answer.memory, answer.question.workload
    length = workload.prompt.mean + workload.output.mean
    return (
        f"{plan.capacity / GIB:.0f} GiB x {engine.memory_fraction:.2f} - {plan.weights / GIB:.1f}"
        + (f" - {plan.draft / GIB:.1f} for the draft" if plan.draft else "")
        + f" = {plan.kv / GIB:.1f} GiB a GPU for KV: {answer.full_length:,} requests of {length:,.0f} tokens; "
        f"{answer.running:,} running at mixed lengths with 99% certainty."
    )


def _prefill(answer: Answer) -> str:
    replica, workload = answer.replica, answer.question.workload
    service = prefill.occupied(replica, workload.new_prompt, workload.prompt.mean * workload.cached)
    chunk = prefill.chunk_step(replica, workload.new_prompt, 0, tokens=min(workload.new_prompt, replica.engine.chunk))
    cached = f" ({workload.cached:.0%} of {workload.prompt.mean:,.0f} cached)" if workload.cached else ""
    busy = workload.rate * service
    return (
        f"{workload.new_prompt:,.0f} tokens{cached} take {service * 1000:.0f} ms of a replica, bound by "
        f"{chunk.bound}; {plain(workload.rate)} a second are {busy:.1f} replicas' work."
    )


def _decode(answer: Answer) -> str:
    replica, workload, load = answer.replica, answer.question.workload, answer.fleet.load
    context, _ = workload.resident
    speed = tokens_per_second(replica, load.running, context)
    read = StepLoad(sequences=load.running / replica.parallel.pipeline, context=context)
    weights, cache = step.weight_bytes_read(replica, read.tokens), step.kv_bytes_read(replica, read)
    total = workload.rate * workload.output.mean
    return (
        f"{plain(workload.rate)} x {workload.output.mean:,.0f} = {total:,.0f} tokens/s; with {load.running:.0f} "
        f"running a step reads {weights / 1e9:.1f} GB of weights and {cache / 1e9:.1f} GB of KV a GPU and takes "
        f"{answer.step.total * 1000:.1f} ms, bound by {answer.step.bound}: {speed:,.0f} tokens/s, "
        f"{total / speed:.1f} replicas' work."
    )


def _together(answer: Answer) -> str:
    load, best = answer.fleet.load, answer.fleet.best_rate
    way = "sharing steps with prefill chunks" if answer.replica.engine.mixed else "stopped while prompts are read"
    return (
        f"decoding, {way}, gives a token every {load.tpot_mean * 1000:.1f} ms on average. One replica holds "
        f"{best:.2f} requests/s; beyond that, {answer.fleet.limit} gives way first."
    )


def _fleet(answer: Answer) -> str:
    fleet, load, rate = answer.fleet, answer.fleet.load, answer.question.workload.rate
    spare = f" + {fleet.spare} spare" if fleet.spare else ""
    exact = rate / fleet.best_rate
    return (
        f"{plain(rate)} / {fleet.best_rate:.2f} = {exact:.2f} -> {math.ceil(exact - 1e-9)}{spare} replicas of "
        f"{counted(fleet.gpus_each, 'GPU')} = {counted(fleet.gpus, 'GPU')}; then TTFT p99 "
        f"{load.ttft_p99 * 1000:.0f} ms, TPOT p99 {load.tpot_p99 * 1000:.1f} ms."
    )


def _prefill_pool(pools: Pools) -> str:
    return (
        f"one replica that only reads holds {pools.prefill_rate:.2f} requests/s: {pools.prefill_replicas} replicas of "
        f"{counted(pools.gpus_each, 'GPU')}; TTFT p99 {pools.ttft_p99 * 1000:.0f} ms, of which moving a mean prompt's "
        f"cache is {pools.transfer * 1000:.1f} ms."
    )


def _decode_pool(pools: Pools) -> str:
    spare = f", and {pools.spare} spare in each pool" if pools.spare else ""
    return (
        f"one replica that only decodes holds {pools.decode_rate:.2f} requests/s: {pools.decode_replicas} replicas; "
        f"TPOT p99 {pools.tpot_p99 * 1000:.1f} ms. In all {counted(pools.gpus, 'GPU')}{spare}."
    )


def counted(number: int, noun: str) -> str:
    """ "1 GPU", "4 GPUs"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def plain(value: float) -> str:
    """Four digits, without an exponent."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
