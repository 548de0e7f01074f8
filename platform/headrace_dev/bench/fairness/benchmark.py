"""`bench fairness`: the queue's rule in virtual time, beside first come, first served."""

from typing import Any

from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.fairness import on_sglang, rounds
from headrace_dev.bench.fairness.rule import FirstCome, Rule
from headrace_dev.bench.fairness.scenarios import Crowd, crowd, twins
from routing.fairness.order import CEILING, FairOrder, cost

FAIR = Rule("fair", FairOrder, cost, CEILING)
FIRST_COME = Rule("first come", FirstCome, cost)
MOVED, SHARE, APART = 0.20, 0.90, 0.05


class Fairness(Benchmark):
    name = "fairness"
    help = (
        "Tenants on a busy simulated fleet, in virtual time: a heap of batch beside people, and unequal demand. With"
        " `--engine sglang` smaller, on the real one (SGLANG_URL, or `make sglang`), in half an hour."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="the first")
        parser.add_argument("--seeds", type=int, default=3, help="how many; the report gives the worst")
        parser.add_argument("--engine", choices=("simulated", "sglang"), default="simulated")
        parser.add_argument("--repeat", type=int, default=3, help="of the real engine; the report gives the median")
        parser.add_argument("--rounds", type=int, default=5, help="of each repeat")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        if options["engine"] == "sglang":
            row = on_sglang.measured(options["repeat"], options["rounds"], say)
            parameters = {name: options[name] for name in ("engine", "repeat", "rounds")}
            return Report(self.name, parameters, [row], targets(row), [REAL_NOTE])
        seeds = [options["seed"] + number for number in range(options["seeds"])]
        found = [measured(rule, seeds, say) for rule in (FAIR, FIRST_COME)]
        parameters = {name: options[name] for name in ("seed", "seeds")}
        return Report(self.name, parameters, found, targets(found[0]), [NOTE])


def measured(rule: Rule, seeds: list[int], say: Say) -> dict[str, Any]:
    """The row of one rule: each figure the worst of the seeds."""
    crowds: list[Crowd] = []
    apart: list[float] = []
    for seed in seeds:
        crowds.append(crowd(rule, seed))
        apart.append(twins(rule, seed))
        say(f"{rule.name}, seed {seed}: {crowds[-1]}, twins {apart[-1]:.1%} apart")
    return {
        "rule": rule.name,
        "ttft_p99_alone": max(one.alone for one in crowds),
        "ttft_p99_beside": max(one.beside for one in crowds),
        "ttft_moved": max(one.moved for one in crowds),
        "batch_share": min(one.batch_share for one in crowds),
        "twins_apart": max(apart),
    }


def targets(fair: dict[str, Any]) -> list[Target]:
    return [
        Target("interactive TTFT p99 beside a flood of batch, moved by", fair["ttft_moved"], MOVED),
        Target("batch, part of the capacity people leave", fair["batch_share"], SHARE, True),
        Target("equal tenants with 10x different demand, served apart by", fair["twins_apart"], APART),
    ]


NOTE = (
    "Simulated seconds; 4 replicas of the routing trace's kind. Service is counted in the rule's virtual tokens; what"
    " people leave is what batch alone, first come first served, gets done less what people do."
)
REAL_NOTE = (
    f"Real seconds, one replica; the room of {on_sglang.ROOM} tokens. People ask for {rounds.PEOPLE_PART:.0%}"
    f" of what the engine does. Batch keeps {rounds.FLOOD} requests asked, the twins {rounds.LESSER} and"
    f" {rounds.GREATER}. TTFT moved is the median of a run's rounds, each with the same requests alone and beside. What"
    " people leave is what batch alone gets done in the highest class, times the part of the engine's time that people"
    " do not take, over all rounds."
)
