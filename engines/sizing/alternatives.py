"""What each lever would change, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from engines.sizing.answer import Answer, solve
from engines.sizing.errors import SizingError
from engines.sizing.question import Question
from engines.sizing.replica import Parallel, Speculation

Change = Callable[[Question, Parallel], Question]


@dataclass(frozen=True)
class Alternative:
    """One change to the question, everything else kept; `refusal` where it cannot be done."""

    change: str
    price: str
    gpus: int | None
    replicas: int | None
    ttft_p99: float | None
    tpot_p99: float | None
    refusal: str = ""


def _cached(question: Question, parallel: Parallel) -> Question:
    more = 1 - (1 - question.workload.cached) / 2
    return replace(question, workload=replace(question.workload, cached=more))


LEVERS: tuple[tuple[str, str, Change], ...] = (
    ("FP8 weights", "a little accuracy; check your evals", lambda q, p: replace(q, weights="fp8")),
    ("INT4 weights", "accuracy, more so on small models; prefill no faster", lambda q, p: replace(q, weights="int4")),
    ("FP8 KV", "a little accuracy on long contexts", lambda q, p: replace(q, kv="fp8")),
    ("half the uncached prompt cached", "prompts that share beginnings, and routing that keeps them together", _cached),
    (
        "chunks of 2,048 mixed with decoding",
        "prompts read more slowly; shorter pauses between tokens",
        lambda q, p: replace(q, engine=replace(q.engine, mixed=True, chunk=2048)),
    ),
    (
        "speculative decoding, 4 tokens at 70%",
        "a draft model's memory; slower once arithmetic is the bound",
        lambda q, p: replace(q, speculation=Speculation(4, 0.7)),
    ),
    (
        "twice the tensor parallelism",
        "all-reduces in every layer; larger steps of failure and growth",
        lambda q, p: replace(q, parallel=replace(p, tensor=p.tensor * 2)),
    ),
    (
        "pipeline parallelism of 2",
        "no shorter a token; needs many requests to fill both stages",
        lambda q, p: replace(q, parallel=replace(p, pipeline=p.pipeline * 2)),
    ),
    (
        "separate prefill and decode pools",
        "a fast network, a second pool to run, capacity that cannot be lent",
        lambda q, p: replace(q, disaggregated=True),
    ),
)


def explore(answer: Answer) -> list[Alternative]:
    """Each lever applied alone to the answered question, at the parallelism the answer chose."""
    parallel = answer.replica.parallel
    base = replace(answer.question, parallel=parallel)
    found = []
    for name, price, change in LEVERS:
        question = change(base, parallel)
        if question == base:
            continue
        try:
            other = solve(question)
        except SizingError as error:
            found.append(Alternative(name, price, None, None, None, None, str(error)))
            continue
        found.append(_row(name, price, other))
    return found


def _row(name: str, price: str, other: Answer) -> Alternative:
    if other.pools:
        pools = other.pools
        return Alternative(
            name, price, pools.gpus, pools.prefill_replicas + pools.decode_replicas, pools.ttft_p99, pools.tpot_p99
        )
    load = other.fleet.load
    return Alternative(name, price, other.fleet.gpus, other.fleet.replicas, load.ttft_p99, load.tpot_p99)
