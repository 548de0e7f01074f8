"""The breaker's states: what opens it, for how long, who may try, and what says nothing of the upstream."""

from routing.breaker import CLOSED, HALF_OPEN, OPEN, TRIAL_SECONDS, Breakers, Pass


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(failures: int = 3) -> tuple[Breakers, Clock, list[int]]:
    clock, states = Clock(), list[int]()
    return Breakers(failures=failures, told=lambda name, state: states.append(state), clock=clock), clock, states


def entered(breakers: Breakers) -> Pass:
    leave = breakers.enter("a")
    assert leave is not None
    return leave


def fail(breakers: Breakers, times: int = 1) -> None:
    for _ in range(times):
        leave = entered(breakers)
        leave.failed()
        leave.left()


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breakers, _, states = made()
    fail(breakers, 2)
    entered(breakers).succeeded()
    fail(breakers, 2)
    assert (breakers.wait("a"), states) == (0, [])
    fail(breakers)
    assert (breakers.enter("a"), states) == (None, [OPEN])
    assert 0.8 <= breakers.wait("a") <= 1.2
    assert breakers.wait("b") == 0


def test_it_keeps_a_server_s_models_apart_and_tells_the_worst_of_them() -> None:
    told: list[tuple[str, int]] = []
    breakers = Breakers(failures=1, told=lambda name, state: told.append((name, state)), clock=(clock := Clock()))
    for name in ("a large", "a small", "b large"):
        leave = breakers.enter(name)
        assert leave is not None
        leave.failed(pause=30 if name == "a large" else 10)
    assert [breakers.wait(name) for name in ("a large", "a small", "a other")] == [30, 10, 0]
    clock.now += 10
    trial = breakers.enter("a small")
    assert trial is not None
    trial.answered()
    assert told == [("a", OPEN), ("a", OPEN), ("b", OPEN), ("a", OPEN), ("a", OPEN)]
    assert (breakers.wait("a small"), breakers.wait("a large")) == (0, 20)


def test_it_counts_neither_refusals_nor_those_who_leave() -> None:
    breakers, _, _ = made()
    for _ in range(10):
        entered(breakers).answered()
        entered(breakers).left()
    assert breakers.wait("a") == 0


def test_it_lets_one_at_a_time_try_and_closes_at_the_first_byte() -> None:
    breakers, clock, states = made()
    fail(breakers, 3)
    clock.now += 2
    assert breakers.wait("a") == 0
    trial = entered(breakers)
    assert breakers.enter("a") is None
    assert breakers.wait("a") > 0
    trial.left()  # its client left: the next one tries
    trial = entered(breakers)
    trial.answered()
    assert states == [OPEN, HALF_OPEN, CLOSED]
    entered(breakers)


def test_it_pauses_twice_as_long_each_time_a_trial_fails_and_a_minute_at_most() -> None:
    breakers, clock, _ = made()
    fail(breakers, 3)
    pauses = []
    for _ in range(9):
        pauses.append(breakers.wait("a"))
        clock.now += 73
        fail(breakers)
    for number, pause in enumerate(pauses):
        assert 0.8 * min(60, 2**number) <= pause <= 1.2 * min(60, 2**number) + 0.001
    clock.now += 73
    entered(breakers).succeeded()
    fail(breakers, 3)
    assert breakers.wait("a") <= 1.2


def test_it_goes_on_pausing_longer_for_one_that_begins_answers_and_breaks_them_off() -> None:
    breakers, clock, _ = made(1)
    fail(breakers)
    clock.now += 2
    trial = entered(breakers)
    trial.answered()
    trial.failed()
    assert 1.6 <= breakers.wait("a") <= 2.4


def test_it_stays_away_for_as_long_as_it_was_told() -> None:
    breakers, clock, _ = made()
    leave, other = entered(breakers), entered(breakers)
    leave.failed(pause=7)
    assert breakers.wait("a") == 7
    other.failed(pause=20)  # asked before it opened, and told to wait longer
    assert breakers.wait("a") == 20
    clock.now += 20
    entered(breakers).failed(pause=100_000)
    assert breakers.wait("a") == 600


def test_it_tries_at_once_what_its_probes_say_serves_again() -> None:
    breakers, clock, _ = made()
    breakers.see({("a", 0), ("b", 0)})
    fail(breakers, 3)
    breakers.see({("a", 0)})  # its probes never failed
    assert breakers.wait("a") > 0
    breakers.see({("b", 0)})
    breakers.see({("a", 0), ("b", 0)})
    assert breakers.wait("a") == 0
    fail(breakers)
    breakers.see({("a", 1), ("b", 0)})  # started anew, too quickly for probes to fail
    assert breakers.wait("a") == 0
    entered(breakers).failed(pause=30)
    breakers.see(set())
    breakers.see({("a", 1)})
    assert breakers.wait("a") == 30, "its own word"
    clock.now += 30
    assert breakers.wait("a") == 0


def test_it_says_that_a_pause_is_over_although_nobody_tries() -> None:
    breakers, clock, states = made()
    fail(breakers, 3)
    breakers.see(set())
    assert states == [OPEN]
    clock.now += 2
    breakers.see(set())
    breakers.see(set())
    assert states == [OPEN, HALF_OPEN]
    fail(breakers)
    assert states == [OPEN, HALF_OPEN, HALF_OPEN, OPEN]


def test_it_forgets_what_is_gone_or_another() -> None:
    breakers, _, states = made()
    breakers.keep({"a": "http://one"})
    late = entered(breakers)
    fail(breakers, 3)
    breakers.keep({"a": "http://one", "b": "http://two"})
    assert breakers.wait("a") > 0
    breakers.keep({"a": "http://elsewhere"})
    assert (breakers.wait("a"), states) == (0, [OPEN, CLOSED])
    late.failed(pause=30)
    assert (breakers.wait("a"), states) == (0, [OPEN, CLOSED])
    fail(breakers, 3)
    breakers.keep({})
    assert (breakers.wait("a"), states) == (0, [OPEN, CLOSED, OPEN, CLOSED])


def test_it_hears_no_verdict_of_attempts_that_began_before_it_opened() -> None:
    breakers, clock, _ = made()
    old = entered(breakers)
    fail(breakers, 3)
    old.succeeded()
    assert breakers.wait("a") > 0
    clock.now += 2
    trial = entered(breakers)
    old.failed()
    old.left()
    assert breakers.enter("a") is None
    trial.succeeded()
    assert breakers.wait("a") == 0


def test_it_never_opens_where_breakers_are_off() -> None:
    breakers, _, _ = made(0)
    fail(breakers, 100)
    entered(breakers).failed(pause=60)
    assert breakers.wait("a") == 0


def test_waiting_in_vain_is_a_failure_only_of_what_answered_nobody_meanwhile() -> None:
    breakers, clock, states = made(1)
    waiting = entered(breakers)
    clock.now += 50
    entered(breakers).answered()
    clock.now += 10
    waiting.waited()
    assert states == []
    alone = entered(breakers)
    clock.now += 60
    alone.waited()
    assert states == [OPEN]


def fail_for(breakers: Breakers, tenant: str | None, times: int = 1) -> None:
    for _ in range(times):
        leave = breakers.enter("a", tenant)
        assert leave is not None
        leave.failed(tenant=tenant)
        leave.left()


def test_failures_of_one_tenant_keep_out_that_tenant_alone() -> None:
    breakers, _, states = made()
    fail_for(breakers, "acme", 3)
    assert states == [OPEN]
    assert breakers.enter("a", "acme") is None
    passes = [breakers.enter("a", "globex") for _ in range(10)]
    assert None not in passes, "others are not held up for a trial"
    assert passes[0] is not None
    passes[0].answered()
    assert (breakers.wait("a", "acme"), states) == (0, [OPEN, CLOSED])


def test_first_failure_of_another_tenant_opens_it_for_all() -> None:
    breakers, clock, _ = made()
    fail_for(breakers, "acme", 3)
    fail_for(breakers, "globex")
    assert breakers.wait("a", "initech") > 0
    clock.now += 5
    trial = breakers.enter("a", "initech")
    assert trial is not None
    assert breakers.enter("a", "hooli") is None
    trial.failed(tenant="initech")
    assert breakers.wait("a", "hooli") > 0, "a trial that fails keeps it shut for all"


def test_tenants_that_fail_together_open_it_as_quickly_as_one() -> None:
    breakers, _, _ = made(5)
    for tenant in ("acme", "globex", "acme", "globex"):
        fail_for(breakers, tenant)
    assert breakers.wait("a", "initech") == 0
    fail_for(breakers, "acme")
    assert breakers.wait("a", "initech") > 0


def test_one_tenant_s_flood_and_another_s_mishap_are_no_outage() -> None:
    breakers, _, _ = made(5)
    fail_for(breakers, "acme", 4)
    fail_for(breakers, "globex")
    fail_for(breakers, "acme", 20)
    assert breakers.wait("a", "globex") == 0
    fail_for(breakers, None, 1)  # the upstream's own, beyond doubt
    assert breakers.wait("a", "globex") > 0


def test_pause_of_one_tenant_is_its_own() -> None:
    breakers, clock, states = made()
    breakers.pause_tenant("a", "acme", 20)
    assert (breakers.wait("a", "acme"), breakers.wait("a", "globex"), states) == (20, 0, [])
    clock.now += 20
    breakers.see(set())
    assert breakers.wait("a", "acme") == 0


def test_trial_that_hangs_does_not_keep_the_others_out() -> None:
    breakers, clock, _ = made()
    fail(breakers, 3)
    clock.now += 2
    entered(breakers)
    assert breakers.enter("a") is None
    clock.now += TRIAL_SECONDS + 0.1
    assert breakers.enter("a") is not None
