"""Short ways to make the profiles and requests of the tests."""

from headrace_dev.simulator.fleet.profile import Costs, Profile
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import Scheduler, Step, Told

COSTS = Costs(step=0.001, weights=0.010, token=0.0001, context=0.000001)


def profile(**changed: object) -> Profile:
    fields: dict[str, object] = {"name": "toy", "source": "the tests", "costs": COSTS, "kv_tokens": 1600, "page": 16}
    return Profile(**(fields | changed))  # type: ignore[arg-type]


def request(name: str, prompt: int, output: int, *, shared: int = 0, priority: int = 0, most: int = 0) -> Request:
    """`prompt` tokens of which the first `shared` (whole blocks) are everybody's; the rest is its own."""
    blocks = (prompt + output) // 16
    common = shared // 16
    chain = [hash(("shared", k)) for k in range(common)] + [hash((name, k)) for k in range(common, blocks)]
    return Request(name, chain, prompt, output, most or output, priority)


class Driven:
    """A scheduler and the time that its steps take."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.now = 0.0
        self.steps: list[Step] = []

    def step(self) -> Told | None:
        """One step, or None when there is nothing to do."""
        step = self.scheduler.plan(self.now)
        if step is None:
            return None
        self.steps.append(step)
        self.now += step.seconds
        return self.scheduler.complete(step, self.now)

    def run(self) -> None:
        while self.step() is not None:
            pass
