"""Closed loads: what benchmarks measure. No queueing theory here, only steady states and sums of steps."""

import math
from dataclasses import dataclass

from engines.sizing import memory, prefill
from engines.sizing.decode import token_time
from engines.sizing.lengths import Workload
from engines.sizing.replica import Replica
from engines.sizing.step import StepLoad, step


@dataclass(frozen=True)
class Throughput:
    """`tokens_per_second` output tokens of one replica; `tpot` seconds between tokens; `ttft` seconds, waiting for
    nobody; `running` sequences at once."""

    tokens_per_second: float
    tpot: float
    ttft: float
    running: float


def one_batch(replica: Replica, batch: int, prompt: int, output: int) -> Throughput:
    """A static batch: all prompts read together, then `output` - 1 steps at a growing context; no request joins.
    tokens/s = batch x output / (prefill + sum of steps), the sum by the trapezoid of its ends (it is linear)."""
    read = prefill.occupied(replica, prompt) * batch if batch > 1 else prefill.alone(replica, prompt)
    first, last = token_time(replica, batch, prompt), token_time(replica, batch, prompt + output)
    decoding = (output - 1) * (first + last) / 2
    return Throughput(batch * output / (read + decoding), (first + last) / 2, read, batch)


def offline(replica: Replica, workload: Workload, *, most: int | None = None) -> Throughput:
    """An endless queue: as many run as fit (or `most`); a finished one is replaced at once, so every step carries
    running x prompt / output prefill tokens beside the decoding ones (mixed), or the same work in turn."""
    running = float(memory.fit_running(replica, workload, quantile=0.0))
    if most is not None:
        running = min(running, most)
    return _steady(replica, workload, running)


def closed_loop(replica: Replica, workload: Workload, concurrency: int) -> Throughput:
    """`concurrency` clients, each sending its next request when the last is answered: those that fit run, less the
    ones being read, whose share of the cycle is ttft / (ttft + output x tpot)."""
    room = memory.fit_running(replica, workload, quantile=0.0)
    running = float(min(concurrency, room))
    for _ in range(30):
        state = _steady(replica, workload, running)
        answering = workload.output.mean * state.tpot
        running = min(concurrency, room) * answering / (answering + state.ttft)
    state = _steady(replica, workload, running)
    waiting = max(0.0, concurrency / (state.tokens_per_second / workload.output.mean) - state.ttft - answering)
    return Throughput(state.tokens_per_second, state.tpot, state.ttft + waiting, running)


def _steady(replica: Replica, workload: Workload, running: float) -> Throughput:
    context, _ = workload.resident
    stages = replica.parallel.pipeline
    read = prefill.alone(replica, workload.new_prompt, workload.prompt.mean * workload.cached)
    if not replica.engine.mixed:
        occupied = prefill.occupied(replica, workload.new_prompt, workload.prompt.mean * workload.cached)
        cycle = token_time(replica, running, context) + running / workload.output.mean * occupied
        return Throughput(running / cycle, cycle, read, running)
    per_step = running * workload.new_prompt / workload.output.mean
    carried = max(per_step, min(replica.engine.chunk, workload.new_prompt))
    mixed_steps = max(1, math.ceil(carried / replica.engine.chunk))
    plain, both = (
        step(
            replica,
            StepLoad(
                sequences=running / stages,
                context=context,
                prefill=chunk / stages,
                prefill_context=workload.prompt.mean * workload.cached + workload.new_prompt / 2,
            ),
        ).total
        for chunk in (0.0, carried / mixed_steps)
    )
    cycle = token_time(replica, running, context) + per_step / carried * mixed_steps * (both - plain)
    return Throughput(running / cycle, cycle, max(read, both), running)
