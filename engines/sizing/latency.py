"""A replica under a steady load of requests: how many run, TTFT and TPOT, mean and p99.

Little's law ties the pieces: at `rate` requests/s with answers of O tokens and T seconds a token, rate x O x T
sequences run; T in turn depends on how many run and on how much of the time prefills take. The fixed point is found
by bisection. TPOT is a request's (last token - first token) / (tokens - 1), as benchmarks report it: a mean over its
tokens, so its p99 is over requests, not over single gaps.
"""

import math
from dataclasses import dataclass

from engines.sizing import memory, prefill, queueing
from engines.sizing.decode import decode_step, token_time
from engines.sizing.lengths import Workload
from engines.sizing.memory import P99
from engines.sizing.replica import Replica
from engines.sizing.step import StepLoad, step

LONGEST_TOKEN = 20.0  # seconds; a fixed point beyond it is called overload


@dataclass(frozen=True)
class Load:
    """What a replica does at `rate` requests/s. Times in seconds; `room` is the most sequences that run."""

    rate: float
    running: float
    running_p99: float
    room: int
    prefill_share: float
    ttft_mean: float
    ttft_p99: float
    tpot_mean: float
    tpot_p99: float
    longest_gap: float  # between two tokens of one answer, when a p99 prompt arrives
    bound: str

    @property
    def fits(self) -> bool:
        return self.running_p99 <= self.room


def at_rate(replica: Replica, workload: Workload, rate: float, *, room: int | None = None) -> Load | None:
    """The replica's state at `rate` requests/s, or None where it cannot keep up."""
    room = memory.fit_running(replica, workload) if room is None else room
    context, _ = workload.resident
    output, cached_tokens = workload.output.mean, workload.prompt.mean * workload.cached
    service = prefill.occupied(replica, workload.new_prompt, cached_tokens)
    if rate * service >= 1 or room < 1:
        return None
    token = _fixed_point(replica, workload, rate, service)
    if token is None:
        return None
    running = rate * output * token
    slowdown = _chunk_slowdown(replica, workload, running)
    waiting = queueing.wait(1, rate, service * slowdown, service_cv=workload.prompt.cv, arrival_cv=workload.arrival_cv)
    slots = queueing.wait(room, rate, output * token, service_cv=workload.output.cv, arrival_cv=workload.arrival_cv)
    if waiting is None or slots is None:
        return None
    keep = 1 - workload.cached
    reads = [prefill.alone(replica, each * keep, each * workload.cached) * slowdown for each in workload.prompt.grid()]
    decode = decode_step(replica, running, context)
    busy = 1 - token_time(replica, running, context) / token
    running_p99 = running + P99 * math.sqrt(running)
    return Load(
        rate=rate,
        running=running,
        running_p99=running_p99,
        room=room,
        prefill_share=busy,
        ttft_mean=waiting.mean + sum(reads) / len(reads) + decode.total / 2 + slots.mean,
        ttft_p99=queueing.percentile_of_sum(waiting, reads) + decode.total + slots.quantile(0.99),
        tpot_mean=token,
        tpot_p99=_slow_token(replica, workload, rate, token, running_p99),
        longest_gap=_longest_gap(replica, workload, running),
        bound="compute" if busy > 0.5 else decode.bound,
    )


def _per_token(replica: Replica, workload: Workload, rate: float, token: float, service: float) -> float:
    """Seconds a token takes if it takes `token`: the map whose fixed point is the truth.

    Alternating (SGLang's default): a decode step, stretched by the share of time that prefills take.
    Mixed: rate x token x prompt tokens must be prefilled per step. They come a chunk (or a whole shorter prompt) at a
    time, in a step that decodes too; a share of the steps carries one."""
    context, _ = workload.resident
    running = rate * workload.output.mean * token
    decode_only = token_time(replica, running, context)
    if not replica.engine.mixed:
        return decode_only / (1 - rate * service)
    per_step = rate * workload.new_prompt * token
    carried = max(per_step, min(replica.engine.chunk, workload.new_prompt))
    plain, both = _with_chunk(replica, workload, running, 0), _with_chunk(replica, workload, running, carried)
    return decode_only + per_step / carried * (both - plain)


def _with_chunk(replica: Replica, workload: Workload, running: float, chunk: float) -> float:
    """Seconds of a step in which `running` sequences decode and `chunk` prompt tokens are read."""
    context, _ = workload.resident
    stages = replica.parallel.pipeline
    load = StepLoad(
        sequences=running / stages,
        context=context,
        prefill=chunk / stages,
        prefill_context=workload.prompt.mean * workload.cached + workload.new_prompt / 2,
    )
    return step(replica, load).total


def _fixed_point(replica: Replica, workload: Workload, rate: float, service: float) -> float | None:
    low = _per_token(replica, workload, rate, 1e-9, service)
    high = low
    while _per_token(replica, workload, rate, high, service) > high:
        high *= 2
        if high > LONGEST_TOKEN:
            return None
    return queueing.bisect(
        lambda token: _per_token(replica, workload, rate, token, service) - token, 0.0, low / 2, high
    )


def _chunk_slowdown(replica: Replica, workload: Workload, running: float) -> float:
    """How much longer a chunk takes in a mixed engine because it shares its step with decoding. An alternating one
    stops decoding while it prefills, so prompts are read at full speed (1)."""
    if not replica.engine.mixed:
        return 1.0
    chunk = min(replica.engine.chunk, workload.new_prompt)
    return _with_chunk(replica, workload, running, chunk) / _with_chunk(replica, workload, 0, chunk)


def _longest_gap(replica: Replica, workload: Workload, running: float) -> float:
    """The pause a running answer sees when a p99 prompt arrives: all of its prefill where prefill goes first, one
    chunk's step where chunks are mixed in. This is what a smaller chunk buys."""
    context, _ = workload.resident
    long = workload.prompt.quantile(0.99) * (1 - workload.cached)
    if replica.engine.mixed:
        return _with_chunk(replica, workload, running, min(replica.engine.chunk, long))
    return prefill.alone(replica, long, long * workload.cached) + decode_step(replica, running, context).total


def _slow_token(replica: Replica, workload: Workload, rate: float, token: float, running_p99: float) -> float:
    """TPOT of the request that is slower than 99 of 100, conservatively with both misfortunes at once: as many
    running as at the p99 of a Poisson count, and the p99 of prefill work arriving while it decodes (a compound
    Poisson sum, taken as normal: mean n s, variance n s^2 (1 + cv^2), n = rate x O x T). Short answers, over which
    little averages out, fare worse than this."""
    context, _ = workload.resident
    output = workload.output.mean
    service = prefill.occupied(replica, workload.new_prompt, workload.prompt.mean * workload.cached)
    decode = token_time(replica, running_p99, context)
    stretch = token - token_time(replica, rate * output * token, context)  # prefill work per token, on average
    prefills = rate * output * token
    excess = P99 * service * math.sqrt(prefills * (1 + workload.prompt.cv**2)) / output
    return decode + stretch + excess
