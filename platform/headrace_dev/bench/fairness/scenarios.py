"""The two situations of the issue, drawn by a seed, and what they show of a rule."""

import random
from dataclasses import dataclass

from headrace_dev.bench.fairness.gate import Gate, Job
from headrace_dev.bench.fairness.rule import FirstCome, Rule
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.traces import load
from headrace_dev.bench.traces.draws import arrivals, whole
from headrace_dev.bench.traces.shape import Size
from headrace_dev.simulator.fleet.profile import Profile

REPLICAS = 4
PEOPLE = {"prompt": Size(1500, 0.8, 50, 6000), "output": Size(150, 0.8, 8, 600)}
SUMMARIES = {"prompt": Size(1200, 0.5, 200, 4000), "output": Size(120, 0.4, 20, 300)}
MOST = 600  # output tokens everybody allows
PEOPLE_RATE = 6.0  # requests a second: about a third of the fleet
SUMMARY_COUNT = 10_000
TWIN_RATE = 25.0  # requests a second of the lesser twin: well above its half of the fleet
BACKLOG = 50  # requests that a backlogged tenant has waiting
SECONDS, WARMUP = 300.0, 60.0
TWIN_SECONDS = 600.0  # the rule keeps twins within a bounded amount of service, so a longer time shows it smaller


@dataclass(frozen=True)
class Crowd:
    """Interactive TTFT p99 alone and beside 10,000 summaries, seconds; what batch got of what people left, 0..1."""

    alone: float
    beside: float
    batch_share: float

    @property
    def moved(self) -> float:
        return self.beside / self.alone - 1


def replica() -> Profile:
    return load().replica


def job(source: random.Random, name: str, tenant: str, priority: str, sizes: dict[str, Size], at: float) -> Job:
    prompt, output = whole(source, sizes["prompt"]), whole(source, sizes["output"])
    return Job(name, tenant, priority, prompt, output, MOST, at)


def people(seed: int) -> list[Job]:
    source = random.Random(f"people {seed}")
    due = arrivals(source, PEOPLE_RATE, 0, SECONDS)
    return [job(source, f"p{n}", "acme", "interactive", PEOPLE, at) for n, at in enumerate(due)]


def summaries(seed: int) -> list[Job]:
    source = random.Random(f"batch {seed}")
    return [job(source, f"b{n}", "globex", "batch", SUMMARIES, 10.0) for n in range(SUMMARY_COUNT)]


def run(rule: Rule, *heaps: list[Job]) -> Gate:
    gate = Gate(replica(), REPLICAS, rule)
    for heap in heaps:
        for one in heap:
            gate.offer(one)
    gate.clock.run(until=SECONDS)
    return gate


def ttft_p99(gate: Gate) -> float:
    """Of interactive requests that came after the warm-up; one without a token yet counts as it has waited."""
    jobs = [one for one in gate.jobs if one.priority == "interactive" and one.at > WARMUP]
    return percentile([(SECONDS if one.first_at is None else one.first_at) - one.at for one in jobs], 99)


def served(rule: Rule, gate: Gate, tenant: str, seconds: float = SECONDS) -> float:
    """Virtual tokens a second that were processed after the warm-up, in a run of so many seconds."""

    def by(now: float) -> float:
        return sum(rule.cost(*one.processed(now, seconds)) for one in gate.jobs if one.tenant == tenant)

    return (by(seconds) - by(WARMUP)) / (seconds - WARMUP)


def crowd(rule: Rule, seed: int) -> Crowd:
    """A tenant sends 10,000 summaries while another's people chat. What is left: what batch alone would be served with
    every door open, less what people are."""
    alone, both = run(rule, people(seed)), run(rule, people(seed), summaries(seed))
    open_doors = run(Rule("first come", FirstCome, rule.cost), summaries(seed))
    left = served(rule, open_doors, "globex") - served(rule, both, "acme")
    return Crowd(ttft_p99(alone), ttft_p99(both), served(rule, both, "globex") / left)


def twins(rule: Rule, seed: int) -> float:
    """Two equal tenants, both asking for more than the half they are due, one ten times what the other does: how far
    apart they are served while both have requests waiting, as a part of the mean."""
    source = random.Random(f"twins {seed}")
    gate = Gate(replica(), REPLICAS, rule)
    for tenant, rate in (("acme", TWIN_RATE), ("globex", 10 * TWIN_RATE)):
        for n, at in enumerate(arrivals(source, rate, 0, TWIN_SECONDS)):
            gate.offer(job(source, f"{tenant}{n}", tenant, "standard", SUMMARIES, at))
    for moment in range(int(WARMUP), int(TWIN_SECONDS) + 1, 10):
        gate.clock.run(until=float(moment))
        if min(gate.queued.values()) < BACKLOG:
            raise RuntimeError("a tenant is not backlogged: the scenario asks too little of this fleet")
    one, other = (served(rule, gate, tenant, TWIN_SECONDS) for tenant in ("acme", "globex"))
    return abs(one - other) / ((one + other) / 2)
