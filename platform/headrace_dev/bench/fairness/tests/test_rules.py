"""The gate and the scenarios, on small cases and with rules whose outcome is known."""

import pytest

from headrace_dev.bench.fairness.gate import Gate, Job
from headrace_dev.bench.fairness.rule import CLASSES, FirstCome, Rule
from headrace_dev.bench.fairness.scenarios import replica, run, served, ttft_p99


def plain_cost(prompt: int, output: int) -> float:
    return prompt + 2.0 * output


FIRST_COME = Rule("first come", FirstCome, plain_cost)


class PeopleFirst(FirstCome):
    """Strict classes, first come within each."""

    def __init__(self) -> None:
        super().__init__()
        self._classes: dict[str, list[str]] = {name: [] for name in CLASSES}

    def join(self, request_id: str, *, tenant: str, priority: str, cost: float) -> None:
        self._classes[priority].append(request_id)

    def turns(self) -> list[str]:
        return next(([waiting[0]] for waiting in self._classes.values() if waiting), [])

    def granted(self, request_id: str) -> None:
        for waiting in self._classes.values():
            if request_id in waiting:
                waiting.remove(request_id)


def heap(count: int, at: float = 0.0, priority: str = "batch", tenant: str = "globex") -> list[Job]:
    return [Job(f"{tenant}{at}{n}", tenant, priority, 2000, 100, 200, at) for n in range(count)]


def test_it_lets_in_what_fits_and_the_rest_when_room_comes_free() -> None:
    gate = Gate(replica(), 2, FIRST_COME)
    for one in heap(400):
        gate.offer(one)
    gate.clock.run(until=1.0)
    room = int(replica().kv_tokens * 1.25) // 2200
    assert gate.queued["globex"] == 400 - 2 * room
    gate.clock.run()
    assert gate.queued["globex"] == 0
    assert all(one.ended_at is not None for one in gate.jobs)


def test_people_wait_behind_batch_unless_the_rule_says_otherwise() -> None:
    def people() -> list[Job]:
        return [one for at in range(61, 80) for one in heap(1, float(at), "interactive", "acme")]

    behind = run(FIRST_COME, heap(3000), people())
    before = run(
        Rule("people first", PeopleFirst, plain_cost, {"interactive": 1.0, "batch": 0.85}), heap(3000), people()
    )
    assert ttft_p99(behind) > 20
    assert ttft_p99(before) < 1
    assert served(FIRST_COME, before, "globex") == pytest.approx(served(FIRST_COME, behind, "globex"), rel=0.1)
