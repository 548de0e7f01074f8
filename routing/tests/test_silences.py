"""Who was silent to a tenant is passed over by its next requests for a while, and then tried by one at a time."""

from routing.silences import FIRST_PAUSE, LONGEST_PAUSE, Silences


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def silenced(clock: Clock) -> Silences:
    silences = Silences(clock=clock)
    silences.note("a m", "acme", began=clock.now - 1)
    return silences


def test_silent_one_is_passed_over_by_that_tenant_alone() -> None:
    silences = silenced(Clock())
    assert silences.of("acme") == {"a m"}
    assert not silences.of("globex")


def test_one_request_tries_it_when_its_pause_is_over() -> None:
    clock = Clock()
    silences = silenced(clock)
    clock.now += FIRST_PAUSE
    assert not silences.of("acme")
    silences.asked("a m", "acme")
    assert silences.of("acme") == {"a m"}
    silences.answered("a m", "acme")
    assert not silences.of("acme")


def test_pause_doubles_with_each_silence_that_follows() -> None:
    clock = Clock()
    silences = silenced(clock)
    pauses = []
    for _ in range(5):
        began = clock.now
        while silences.of("acme"):
            clock.now += 1
        pauses.append(clock.now - began)
        sent = clock.now
        clock.now += 1
        silences.note("a m", "acme", began=sent)
    assert pauses == [10, 20, 40, 60, 60]


def test_requests_that_were_under_way_are_one_silence() -> None:
    clock = Clock()
    silences = silenced(clock)
    for _ in range(8):
        silences.note("a m", "acme", began=clock.now - 0.5)
    clock.now += FIRST_PAUSE
    assert not silences.of("acme")


def test_gone_and_old_ones_are_forgotten() -> None:
    clock = Clock()
    silences = silenced(clock)
    silences.keep({"b m"})
    assert not silences._by_tenant
    for number in range(5000):
        clock.now += LONGEST_PAUSE
        silences.note(f"a{number} m", "acme", began=clock.now)
    assert len(silences._by_tenant["acme"]) <= 4096
