"""The answer as the page shows it: a handful of figures with their units, ready to print."""

from dataclasses import dataclass

from engines.sizing import document
from engines.sizing.answer import Answer
from engines.sizing.report import seconds


@dataclass(frozen=True)
class Tile:
    label: str
    value: str
    note: str
    tone: str = ""  # "good" or "tight" where there is a target


def tiles(answer: Answer) -> list[Tile]:
    load, day, targets = answer.fleet.load, answer.day, answer.question.targets
    ttft, tpot = load.ttft_p99, load.tpot_p99
    if answer.pools:
        ttft, tpot = answer.pools.ttft_p99, answer.pools.tpot_p99
    found = [
        Tile("GPUs", f"{answer.gpus:,}", document.sentence(answer).split(": ", 1)[1].split(";")[0]),
        Tile("Bound by", answer.bound, f"{answer.fleet.limit} gives way first"),
        Tile("TTFT p99", seconds(ttft), _target(targets.ttft_p99), _tone(ttft, targets.ttft_p99)),
        Tile("TPOT p99", seconds(tpot), _target(targets.tpot_p99), _tone(tpot, targets.tpot_p99)),
        Tile(
            "One replica holds", f"{answer.fleet.best_rate:,.2f}/s", f"{load.running:.0f} running, room for {load.room}"
        ),
        Tile("GPU-hours a day", f"{day.gpu_hours:,.0f}", f"{day.gpu_hours_following:,.0f} following the load"),
    ]
    if answer.cost:
        found.append(
            Tile(
                "Per million output tokens",
                f"{answer.cost.per_million_output:,.4f}",
                f"{answer.cost.per_million_output_at_capacity:,.4f} with every replica full",
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
