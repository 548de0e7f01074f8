"""From a question to an answer."""

from dataclasses import dataclass

from engines.sizing import cost as money
from engines.sizing import day, disaggregation, fleet, memory, prefill
from engines.sizing.decode import decode_step
from engines.sizing.disaggregation import Pools
from engines.sizing.errors import BadValue, DoesNotFit, OutOfReach
from engines.sizing.fleet import Fleet
from engines.sizing.memory import MemoryPlan
from engines.sizing.question import Question
from engines.sizing.replica import Parallel, Replica
from engines.sizing.step import StepTime

TENSOR_SIZES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Answer:
    """`full_length` sequences of prompt + output fit; `running` fit with 99% probability at their mixed lengths.
    `step` is the decode step at the load of the peak; `read` seconds to read one prompt on an idle replica."""

    question: Question
    replica: Replica
    memory: MemoryPlan
    full_length: int
    running: int
    step: StepTime
    read: float
    fleet: Fleet
    pools: Pools | None
    day: day.Day
    cost: money.Cost | None
    break_even: money.BreakEven | None

    @property
    def whole(self) -> Fleet | Pools:
        """What is to be run: the two pools where they were asked for, else the fleet. `fleet` is there either way."""
        return self.pools or self.fleet

    @property
    def gpus(self) -> int:
        return self.whole.gpus

    @property
    def bound(self) -> str:
        """memory, bandwidth, compute or latency: what a replica runs out of first."""
        return self.fleet.bound


def solve(question: Question) -> Answer:
    """Raises a SizingError that says what would help."""
    replica, found = _choose(question)
    workload = question.workload
    context, _ = workload.resident
    pools = disaggregation.size(replica, workload, question.targets) if question.disaggregated else None
    whole = pools or found
    hours = day.over_day(whole, workload, question.shares)
    return Answer(
        question=question,
        replica=replica,
        memory=memory.plan(replica),
        full_length=memory.fit_at(replica, workload.prompt.mean + workload.output.mean),
        running=memory.fit_running(replica, workload),
        step=decode_step(replica, found.load.running, context),
        read=prefill.alone(replica, workload.new_prompt, workload.prompt.mean * workload.cached),
        fleet=found,
        pools=pools,
        day=hours,
        cost=money.over_day(whole, workload, hours, question.prices) if question.prices else None,
        break_even=money.break_even(whole, workload, hours, question.prices) if question.prices else None,
    )


def _choose(question: Question) -> tuple[Replica, Fleet]:
    """The asked parallelism, or the tensor size with the fewest GPUs in all (ties: fewer a replica)."""
    if question.parallel is not None:
        replica = question.replica(question.parallel)
        return replica, fleet.size(replica, question.workload, question.targets)
    best: tuple[Replica, Fleet] | None = None
    refusal: Exception | None = None
    for tensor in TENSOR_SIZES:
        if best is not None and tensor > best[1].gpus:
            break
        try:
            replica = question.replica(Parallel(tensor))
            found = fleet.size(replica, question.workload, question.targets)
        except BadValue:
            continue  # does not divide the heads, or no link figure: not a size to offer
        except (DoesNotFit, OutOfReach) as error:
            refusal = refusal or error
            continue
        if best is None or found.gpus < best[1].gpus:
            best = replica, found
    if best is None:
        raise refusal or BadValue("tensor parallel size", "auto", "no size can be tried on this accelerator")
    return best
