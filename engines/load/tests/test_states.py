"""How a replica comes to be ready, ejected, down, and back."""

import pytest

from engines.load.figures import Report, State
from engines.load.outcomes import Counted
from engines.load.states import DOUBTED_WEIGHT, FIRST_WEIGHT, Condition, Seen

OK = Seen("ok", 0, heard_at=0.0)


def seen(probe: str = "ok", failed: int = 0, **counted: int) -> Seen:
    return Seen(probe, failed, heard_at=0.0, counted=Counted(**counted))


def state(condition: Condition) -> State:
    return condition.state


def ready(now: float = 0.0) -> Condition:
    condition = Condition(now)
    condition.judge(now, OK)
    assert state(condition) is State.READY
    return condition


def test_it_starts_until_a_probe_or_a_real_answer_says_that_it_serves() -> None:
    condition = Condition(0)
    for second in range(5):
        condition.judge(second, seen("starting", second))
    assert state(condition) is State.STARTING
    condition.judge(6, seen("starting", 6, ok=1))
    assert state(condition) is State.READY
    assert ready().weight(1, OK) == 1.0


def test_it_ejects_after_three_real_failures_in_a_row_whatever_its_health_says() -> None:
    condition = ready()
    assert not condition.judge(1, seen(failed=0, hard=2))
    assert condition.judge(2, seen(hard=1, slow=2))
    assert state(condition) is State.EJECTED
    assert condition.weight(2, OK) == 0
    assert "3 requests failed" in condition.reason


def test_it_takes_back_an_ejected_one_slowly_and_ejects_it_again_for_longer_at_its_next_failure() -> None:
    condition = ready()
    condition.judge(1, seen(hard=3))
    condition.judge(10.9, OK)
    assert state(condition) is State.EJECTED
    condition.judge(11, OK)
    assert state(condition) is State.READY
    assert condition.weight(11, OK) == FIRST_WEIGHT
    assert condition.weight(26, OK) == pytest.approx(0.5)
    assert condition.judge(27, Seen("ok", 0, 0.0, counted=Counted(failed=1, hard=1)))
    condition.judge(46, OK)
    assert state(condition) is State.EJECTED
    condition.judge(47, OK)
    assert state(condition) is State.READY
    condition.judge(78, OK)
    assert condition.weight(78, OK) == 1.0
    assert condition.ejections == 0


def test_it_does_not_eject_for_deadlines_while_its_streams_deliver() -> None:
    condition = ready()
    for second in range(1, 10):
        assert not condition.judge(second, seen(beats=second, slow=second))
    assert condition.judge(15.1, seen(beats=9, slow=9))


def test_it_keeps_one_whose_health_hangs_while_its_streams_deliver() -> None:
    condition = ready()
    for second in range(1, 30):
        condition.judge(second, seen("silent", second, beats=second))
        assert condition.weight(second, seen("silent", second, beats=second)) == 1.0
    assert state(condition) is State.READY
    condition.judge(36, seen("silent", 36, beats=29))
    assert state(condition) is State.DOWN


def test_it_takes_one_for_busy_whose_health_hangs_while_it_tells_its_load() -> None:
    condition = ready()
    for second in range(1, 30):
        busy = Seen("silent", second, heard_at=second, loaded_at=second)
        condition.judge(second, busy)
        assert condition.weight(second, busy) == DOUBTED_WEIGHT
    assert state(condition) is State.READY
    condition.judge(36, Seen("silent", 36, heard_at=29, loaded_at=29))
    assert state(condition) is State.DOWN
    refuses = ready()
    refuses.judge(3, Seen("starting", 3, heard_at=3, loaded_at=3))
    assert state(refuses) is State.DOWN, "its health says that it does not serve"


def test_it_ejects_one_that_tells_its_load_and_answers_nothing() -> None:
    condition = ready()
    assert condition.judge(9, Seen("silent", 4, heard_at=9, loaded_at=9, counted=Counted(slow=3)))


def test_it_is_down_after_three_failed_probes_and_doubted_before() -> None:
    condition = ready()
    condition.judge(1, seen("refused", 1))
    assert condition.weight(1, seen("refused", 1)) == DOUBTED_WEIGHT
    condition.judge(3, seen("refused", 3))
    assert (state(condition), condition.reason) == (State.DOWN, "nothing listens there")
    assert not condition.is_up(3, seen("refused", 3))
    condition.judge(20, OK)
    assert state(condition) is State.READY
    assert condition.weight(20, OK) == FIRST_WEIGHT


def test_it_says_down_of_one_that_never_came_up() -> None:
    condition = Condition(0)
    condition.judge(3, Seen("refused", 3))
    assert state(condition) is State.DOWN


def test_it_counts_a_server_as_up_that_answers_anything() -> None:
    starting = Condition(0)
    starting.judge(1, Seen("starting", 1, heard_at=1.0))
    assert starting.is_up(2, Seen("starting", 1, heard_at=1.0))
    assert not Condition(0).is_up(2, Seen())


def test_it_goes_on_from_what_an_earlier_collector_knew() -> None:
    known = Report(State.EJECTED, reason="3 requests failed in a row", ejections=2)
    condition = Condition(100, known)
    condition.judge(101, OK)
    assert state(condition) is State.EJECTED
    condition.judge(120, OK)
    assert state(condition) is State.READY
    assert Condition(0, Report(State.DRAINING)).state is State.READY
    # Failures from before it looked are no new ones.
    again = Condition(0, Report(State.READY))
    assert not again.judge(0, seen(failed=0, ok=5))
