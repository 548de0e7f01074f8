"""Whose fault a failure may be, by who else is answered."""

from routing.own_faults import LATELY_SECONDS, OwnFaults


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_takes_a_tenant_s_failures_for_its_own_while_others_are_answered() -> None:
    faults = OwnFaults()
    faults.answered("a", "globex")
    assert all(faults.is_own("a", "acme") for _ in range(100))
    faults.answered("a", "globex")
    assert faults.is_own("a", "acme")


def test_it_takes_them_for_the_upstream_s_once_somebody_else_s_request_fails() -> None:
    faults = OwnFaults()
    for tenant in ("globex", "initech", "hooli"):
        faults.answered("a", tenant)
    assert faults.is_own("a", "acme")
    assert not faults.is_own("a", "globex")
    assert not faults.is_own("a", "acme")
    faults.answered("a", "hooli")
    assert faults.is_own("a", "acme")


def test_it_takes_them_for_the_upstream_s_where_nobody_else_was_answered_of_late() -> None:
    clock = Clock()
    faults = OwnFaults(clock=clock)
    assert not faults.is_own("a", "acme")
    faults.answered("a", "acme")
    assert not faults.is_own("a", "acme"), "its own answers say nothing of its other requests"
    faults.answered("b", "globex")
    assert not faults.is_own("a", "acme"), "another upstream's say nothing either"
    faults.answered("a", "globex")
    for _ in range(50):
        faults.answered("a", "acme")
    assert faults.is_own("a", "acme")
    clock.now += LATELY_SECONDS
    assert not faults.is_own("a", "acme")


def test_answers_that_merely_begin_excuse_no_failure_after_the_first_byte() -> None:
    """An upstream that breaks off everybody's answers begins them all."""
    faults = OwnFaults()
    for tenant in ("globex", "acme", "globex"):
        faults.answered("a", tenant)
        assert not faults.is_own("a", tenant, is_begun=True)
    faults.completed("a", "globex")
    assert faults.is_own("a", "acme", is_begun=True)
    assert not faults.is_own("a", "globex", is_begun=True)
    assert not faults.is_own("a", "acme", is_begun=True)
