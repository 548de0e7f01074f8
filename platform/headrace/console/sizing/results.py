"""The answer as the page shows it: a handful of figures with their units, ready to print."""

from dataclasses import dataclass

from engines.sizing import document
from engines.sizing.answer import Answer
from engines.sizing.disaggregation import Pools
from engines.sizing.report import seconds


@dataclass(frozen=True)
class Tile:
    label: str
    value: str
    note: str
    tone: str = ""  # "good" or "tight" where there is a target


def tiles(answer: Answer) -> list[Tile]:
    day = answer.day
    return [
        Tile("GPUs", f"{answer.gpus:,}", document.sentence(answer).split(": ", 1)[1].split(";")[0]),
        *_times(answer),
        *(_pools(answer.pools) if answer.pools else _fleet(answer)),
        Tile("GPU-hours a day", f"{day.gpu_hours:,.0f}", f"{day.gpu_hours_following:,.0f} following the load"),
        *_money(answer),
    ]


def _times(answer: Answer) -> list[Tile]:
    targets, times = answer.question.targets, answer.pools or answer.fleet.load
    pairs = (
        ("First token, p99 (TTFT)", times.ttft_p99, targets.ttft_p99),
        ("Further token, p99 (TPOT)", times.tpot_p99, targets.tpot_p99),
    )
    return [Tile(name, seconds(value), _target(target), _tone(value, target)) for name, value, target in pairs]


def _fleet(answer: Answer) -> list[Tile]:
    fleet, load = answer.fleet, answer.fleet.load
    return [
        Tile("Bound by", answer.bound, f"{fleet.limit} gives way first"),
        Tile("One replica holds", f"{fleet.best_rate:,.2f}/s", f"{load.running:.0f} running, room for {load.room}"),
    ]


def _pools(pools: Pools) -> list[Tile]:
    return [
        Tile("A prefill replica holds", f"{pools.prefill_rate:,.2f}/s", f"cache moved in {seconds(pools.transfer)}"),
        Tile("A decode replica holds", f"{pools.decode_rate:,.2f}/s", f"{pools.capacity:,.1f}/s in all"),
    ]


def _money(answer: Answer) -> list[Tile]:
    found = []
    if answer.cost:
        found.append(
            Tile(
                "Per million output tokens",
                f"{answer.cost.per_million_output:,.4f}",
                f"as the GPU-hour; {answer.cost.per_million_output_at_capacity:,.4f} with every replica full",
            )
        )
    if even := answer.break_even:
        found.append(
            Tile(
                "Break-even with hosted",
                f"{even.rate:,.1f}/s",
                f"{even.utilisation:.0%} of capacity; cheaper: {even.cheaper}",
            )
        )
    return found


def notes(answer: Answer) -> list[str]:
    return [*answer.question.assumptions, *document.model(answer)["notes"]]


def _target(target: float | None) -> str:
    return "no target" if target is None else f"target {seconds(target)}"


def _tone(value: float, target: float | None) -> str:
    if target is None:
        return ""
    return "tight" if value > 0.9 * target else "good"
