"""Virtual time: in order, repeatable, and an idle replica wakes for a newcomer."""

from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.tests.toys import COSTS, profile, request
from headrace_dev.simulator.fleet.virtual import Clock, VirtualReplica


def test_it_does_what_is_due_in_order() -> None:
    clock, done = Clock(), list[str]()
    clock.at(2.0, lambda: done.append("later"))
    clock.at(1.0, lambda: done.append("sooner"))
    clock.at(1.0, lambda: clock.after(0.5, lambda: done.append("between")))
    clock.run(until=1.9)
    assert done == ["sooner", "between"]
    clock.run()
    assert done == ["sooner", "between", "later"]
    assert clock.now == 2.0


def test_it_runs_steps_one_after_another_and_tells_of_tokens_and_ends() -> None:
    clock, heard = Clock(), list[tuple[str, str, float]]()
    one = VirtualReplica(
        profile(),
        clock,
        on_first=lambda r, now: heard.append(("first", r.rid, round(now, 6))),
        on_end=lambda r, now: heard.append((r.finish, r.rid, round(now, 6))),
    )
    clock.at(1.0, lambda: one.add(request("a", 160, 2)))
    clock.at(9.0, lambda: one.add(request("b", 320, 1)))
    clock.run()
    read, said = COSTS.step + 160 * COSTS.token, COSTS.step + COSTS.weights + 160 * COSTS.context
    assert heard == [
        ("first", "a", round(1 + read, 6)),
        ("stop", "a", round(1 + read + said, 6)),
        ("first", "b", round(9 + COSTS.step + 320 * COSTS.token, 6)),
        ("stop", "b", round(9 + COSTS.step + 320 * COSTS.token, 6)),
    ]


def test_it_tells_of_an_aborted_request() -> None:
    clock, ended = Clock(), list[str]()
    one = VirtualReplica(profile(), clock, on_end=lambda r, now: ended.append(r.finish))
    asked: Request = request("a", 160, 500)
    clock.at(0.0, lambda: one.add(asked))
    clock.at(1.0, lambda: one.scheduler.abort(asked))
    clock.run()
    assert ended == ["abort"]
    assert asked.generated < 100
