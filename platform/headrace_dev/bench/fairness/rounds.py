"""Rounds on a real engine: a flood of batch alone, one of people's requests, people alone, people beside the flood of
batch; and then the twins.

A machine that others use changes its speed within a minute. So a round is short and its situations are compared with
one another, in turn from front and from back; a figure is the median of the rounds, or counted over all of them.

What people leave is the engine's time that they do not take: on a CPU a token of a long prompt costs more than one of a
short one, so what they do is held against what the engine does where only such requests flood it.

Sizes are those of the simulated situations, an eighth. Answers are short: on a CPU an output token costs as much as
eight of input, so that with others virtual tokens would not be the engine's time.
"""

from collections.abc import Callable
from random import Random
from statistics import mean, median

from headrace_dev.bench.benchmark import Say
from headrace_dev.bench.fairness import scenarios
from headrace_dev.bench.fairness.clients import Clients, Prompt
from headrace_dev.bench.fairness.situation import Situation, situation
from headrace_dev.bench.traces.shape import Size
from routing.fairness.order import cost

OPEN_SECONDS, SECONDS, TWIN_SECONDS = 8.0, 30.0, 60.0
PEOPLE_PART = 0.4  # of the engine's time
FLOOD, LESSER, GREATER = 160, 80, 800  # asked at any time: by the batch tenant, and by the twins
OUTPUT = 5
PEOPLE, BATCH, TWINS = "tenant-0", "tenant-1", ("tenant-2", "tenant-3")


def eighth(size: Size) -> Size:
    return Size(size.mean / 8, size.cv, size.least / 8, size.most / 8)


PEOPLE_SIZE, BATCH_SIZE = eighth(scenarios.PEOPLE["prompt"]), eighth(scenarios.SUMMARIES["prompt"])
TWIN_SIZE = Size(150, 0)  # all alike: in a minute few are served, and what one of them is would be seen


async def one_run(
    url: str, engine: str, model: str, keys: dict[str, str], seed: int, rounds: int, say: Say
) -> dict[str, float]:
    """The figures of `benchmark.targets`. Raises BenchmarkFailed."""

    def heap(clients: Clients, tenant: str, at_once: int, size: Size, priority: str) -> None:
        clients.heap(tenant, keys[tenant], at_once=at_once, size=size, output=OUTPUT, priority=priority)

    def flooded(size: Size) -> Callable[[Clients], None]:
        """With every door open."""
        return lambda clients: heap(clients, BATCH, FLOOD, size, "interactive")

    def alone(clients: Clients) -> None:
        clients.people(PEOPLE, keys[PEOPLE], rate=rate, size=PEOPLE_SIZE, output=OUTPUT)

    def beside(clients: Clients) -> None:
        alone(clients)
        heap(clients, BATCH, FLOOD, BATCH_SIZE, "batch")

    def twins(clients: Clients) -> None:
        for tenant, at_once in zip(TWINS, (LESSER, GREATER), strict=True):
            heap(clients, tenant, at_once, TWIN_SIZE, "standard")

    person = cost(round(mean(Prompt(Random(number), PEOPLE_SIZE).tokens for number in range(1000))), OUTPUT)
    most: list[float] = []
    most_people: list[float] = []
    alones: list[Situation] = []
    besides: list[Situation] = []
    for number in range(rounds):
        name = f"{seed} {number}"
        for size, found_most in ((BATCH_SIZE, most), (PEOPLE_SIZE, most_people)):
            flood = await situation(url, engine, model, name, OPEN_SECONDS, flooded(size))
            found_most.append(flood.served(BATCH))
        rate = PEOPLE_PART * mean(most_people[-2:]) / person
        for begin, found in ((alone, alones), (beside, besides))[:: -1 if number % 2 else 1]:
            found.append(await situation(url, engine, model, name, SECONDS, begin))
        say(
            f"run {name}: at most {most[-1]:.0f} of batch, {most_people[-1]:.0f} of people;"
            f" {rate:.2f} people a second: {told(alones[-1])}; {told(besides[-1])}"
        )
    pair = await situation(url, engine, model, str(seed), TWIN_SECONDS, twins)
    one, other = map(pair.served, TWINS)
    by_people, by_batch = (mean(each.served(tenant) for each in besides) for tenant in (PEOPLE, BATCH))
    figures = {
        "ttft_p99_alone": median(each.ttft_p99(PEOPLE) for each in alones),
        "ttft_p99_beside": median(each.ttft_p99(PEOPLE) for each in besides),
        "ttft_moved": median(
            loaded.ttft_p99(PEOPLE) / free.ttft_p99(PEOPLE) - 1 for free, loaded in zip(alones, besides, strict=True)
        ),
        "batch_share": by_batch / (mean(most) * (1 - by_people / mean(most_people))),
        "twins_apart": abs(one - other) / mean((one, other)),
    }
    say(f"run {seed}: " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()))
    return figures


def told(one: Situation) -> str:
    return f"p99 {one.ttft_p99(PEOPLE):.2f} s, people {one.served(PEOPLE):.0f}, batch {one.served(BATCH):.0f}"
