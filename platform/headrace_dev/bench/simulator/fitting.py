"""The simulator's cost constants for a machine, from measurements on it.

A CPU has no roofline worth the name at these sizes, so `weights` is 0 and the fixed part of a step is one constant:

    TPOT = step + (token + sequence) x B + context x K         B requests decoding over K tokens of context in sum
    TTFT = before + step + token x N + prefix x P              N tokens to read after P cached ones, nobody else

Both are linear in what is sought, and solved by least squares of the relative errors, with nothing below 0. Prompts are
short enough for `attention` to hide in `token`, and a noisy machine would not let the two be told apart. Of repeated
measurements the median counts.
"""

from collections.abc import Sequence
from statistics import mean, median

from headrace_dev.bench.simulator.asking import Seen
from headrace_dev.simulator.fleet.profile import Costs


def fit(singles: Sequence[Seen], batches: Sequence[Sequence[Seen]]) -> Costs:
    """Raises ValueError where there is too little to go by."""
    tpots: dict[tuple[int, float], list[float]] = {}
    for batch in batches:
        context = sum(one.prompt + one.work.output / 2 for one in batch)
        tpots.setdefault((len(batch), round(context, -2)), []).append(mean(one.tpot for one in batch))
    fixed, each, context_cost = solve([([1.0, count, context], median(of)) for (count, context), of in tpots.items()])
    alike: dict[tuple[int, int], list[Seen]] = {}
    for one in singles:
        alike.setdefault((round(one.prompt, -2), round(one.cached, -2)), []).append(one)
    start, token, prefix = solve([_reading(of) for of in alike.values()])
    return Costs(
        step=min(fixed, start),
        weights=0.0,
        token=token,
        sequence=max(0.0, each - token) + max(0.0, fixed - start),
        context=context_cost,
        prefix=prefix,
        before=max(0.0, start - fixed),
    )


def _reading(alike: Sequence[Seen]) -> tuple[list[float], float]:
    cached = mean(one.cached for one in alike)
    return [1.0, mean(one.prompt for one in alike) - cached, cached], median(one.ttft for one in alike)


def solve(points: Sequence[tuple[list[float], float]]) -> list[float]:
    """x >= 0 that minimises the sum of ((a x - b) / b)^2, by coordinate descent: few unknowns, few points."""
    size = len(points[0][0]) if points else 0
    if len(points) < size or not size:
        raise ValueError("too few measurements")
    rows = [[value / target for value in values] for values, target in points]
    scale = [max(abs(row[k]) for row in rows) or 1.0 for k in range(size)]
    rows = [[value / scale[k] for k, value in enumerate(row)] for row in rows]
    found = [0.0] * size
    for _ in range(20_000):
        for k in range(size):
            above = sum(row[k] * (1 - sum(row[j] * found[j] for j in range(size) if j != k)) for row in rows)
            below = sum(row[k] ** 2 for row in rows)
            found[k] = max(0.0, above / below) if below else 0.0
    return [value / scale[k] for k, value in enumerate(found)]
