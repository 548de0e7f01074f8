"""What is measured on the real engine: single prompts and small batches to fit its costs, then a trace to compare."""

import random
from collections.abc import Sequence

from headrace_dev.bench.simulator.asking import Work

WORDS = ["river", "stone", "cloud", "light", "paper", "green", "house", "table", "round", "small", "water", "bread"]


def text(source: random.Random, words: int) -> str:
    return " ".join(source.choices(WORDS, k=words))


def singles(source: random.Random, lengths: Sequence[int] = (40, 150, 350, 700, 1100)) -> list[Work]:
    """Prompts that nothing is cached of, one after the other: the cost of reading. And each once more with some words
    after it: the cost of what is cached."""
    found = []
    for length in lengths:
        asked = f"{source.random()} {text(source, length)}"
        found += [Work(0.0, asked, 2), Work(0.0, f"{asked} {text(source, 40)}", 2)]
    return found


def batches(source: random.Random) -> list[list[Work]]:
    """Equal requests at once, few and many, short and long: the cost of a step."""
    shapes = ((1, 40, 16), (4, 40, 16), (8, 40, 16), (1, 900, 12), (6, 500, 12))
    return [
        [Work(0.0, f"{source.random()} {text(source, words)}", output) for _ in range(count)]
        for count, words, output in shapes
    ]


def trace(seed: int, *, requests: int, rate: float) -> list[Work]:
    """Poisson arrivals: prompts that share one of four beginnings, prompts that grow, and prompts of their own."""
    source = random.Random(seed)
    heads = [text(source, source.randint(100, 500)) for _ in range(4)]
    found: list[Work] = []
    due, talk = 0.0, ""
    for _ in range(requests):
        due += source.expovariate(rate)
        kind = source.random()
        if kind < 0.5:
            asked = f"{source.choice(heads)} {text(source, source.randint(10, 80))}"
        elif kind < 0.75:
            talk = f"{talk if len(talk) < 4000 else ''} {text(source, source.randint(40, 120))}".strip()
            asked = talk
        else:
            asked = f"{source.random()} {text(source, source.randint(50, 500))}"
        found.append(Work(due, asked, source.randint(4, 24)))
    return found
