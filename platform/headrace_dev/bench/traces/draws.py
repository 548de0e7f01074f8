"""Random texts and sizes. A word of three letters and a space is one token of the simulated replicas."""

import math
import random
from functools import cache

from headrace_dev.bench.traces.shape import Size

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@cache
def words() -> list[str]:
    source = random.Random(0)
    return ["".join(source.choices(LETTERS, k=3)) + " " for _ in range(2048)]


def text(source: random.Random, tokens: int) -> str:
    return "".join(source.choices(words(), k=tokens))


def draw(source: random.Random, size: Size) -> float:
    variance = math.log(1 + size.cv**2)
    value = source.lognormvariate(math.log(size.mean) - variance / 2, math.sqrt(variance))
    return min(size.most, max(size.least, value))


def whole(source: random.Random, size: Size) -> int:
    return max(1, round(draw(source, size)))


def geometric(source: random.Random, mean: float, most: int) -> int:
    """At least 1; each further one as likely as the last."""
    count = 1
    while count < most and source.random() < 1 - 1 / mean:
        count += 1
    return count


def arrivals(source: random.Random, rate: float, begin: float, end: float) -> list[float]:
    """Poisson."""
    found, now = [], begin
    while (now := now + source.expovariate(rate)) < end:
        found.append(now)
    return found
