"""The time to read a prompt."""

import math

from engines.sizing.replica import Replica
from engines.sizing.step import StepLoad, StepTime, step


def chunk_step(replica: Replica, new: float, cached: float, *, tokens: float) -> StepTime:
    """One prefill step of `tokens` prompt tokens out of prompts of `new` computed tokens after `cached` known ones.
    A prompt token attends on average to the cached ones and half of the new ones."""
    return step(replica, StepLoad(prefill=tokens, prefill_context=cached + new / 2))


def alone(replica: Replica, new: float, cached: float = 0.0) -> float:
    """Seconds until an idle replica has read a prompt: its chunks one after another.

    With pipeline parallelism the chunks follow each other through the stages: with m chunks and s stages the last
    leaves after (m + s - 1) / (m s) of the time they would take one by one through everything."""
    new = max(1.0, new)
    chunks = math.ceil(new / replica.engine.chunk)
    one = chunk_step(replica, new, cached, tokens=new / chunks).total
    stages = replica.parallel.pipeline
    return one * (chunks + stages - 1) / stages


def occupied(replica: Replica, new: float, cached: float = 0.0) -> float:
    """Seconds of the replica's time a prompt takes when others wait behind it: short prompts share a chunk, so the
    weights are streamed and the overhead paid once for several. Pipeline stages work on different chunks at once."""
    new = max(1.0, new)
    return (
        chunk_step(replica, new, cached, tokens=replica.engine.chunk).total
        * new
        / replica.engine.chunk
        / (replica.parallel.pipeline)
    )
