"""Which prompts are refused, and for how long: those that broke engines twice."""

from routing.quarantine import (
    MOST_PROMPTS,
    OUTAGE_PAUSE,
    OUTAGE_PROMPTS,
    REMEMBERED_SECONDS,
    SAME_CRASH_SECONDS,
    Quarantine,
)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[Quarantine, Clock]:
    clock = Clock()
    return Quarantine("secret", clock=clock), clock


def test_second_break_refuses_the_prompt_and_each_further_one_doubles_the_pause() -> None:
    table, clock = made()
    deadly = table.digest("acme", "m", b"deadly")
    assert (table.note_break(deadly, "acme", "m", "r1"), table.wait(deadly)) == (False, 0)
    assert (table.note_break(deadly, "acme", "m", "r2"), table.wait(deadly), table.refused) == (True, 300, 1)
    clock.now += 301
    assert (table.wait(deadly), table.refused) == (0, 0)
    waits = []
    for _ in range(5):
        assert table.note_break(deadly, "acme", "m", "r1")
        waits.append(table.wait(deadly))
        clock.now += waits[-1]
    assert waits == [600, 1200, 2400, 3600, 3600]


def test_other_prompts_tenants_and_models_are_not_refused() -> None:
    table, _ = made()
    for replica in ("r1", "r2"):
        table.note_break(table.digest("acme", "m", b"deadly"), "acme", "m", replica)
    others = [("acme", "m", b"harmless"), ("globex", "m", b"deadly"), ("acme", "n", b"deadly")]
    assert [table.wait(table.digest(*other)) for other in others] == [0, 0, 0]
    assert table.has_suspects("acme", "m")
    assert not table.has_suspects("globex", "m")


def test_answered_prompt_is_innocent() -> None:
    table, _ = made()
    prompt = table.digest("acme", "m", b"unlucky")
    table.note_break(prompt, "acme", "m", "r1")
    assert table.forgive(prompt)
    assert not table.forgive(prompt)
    assert not table.note_break(prompt, "acme", "m", "r2")


def test_outage_of_many_prompts_refuses_them_for_seconds_only() -> None:
    table, _ = made()
    prompts = [table.digest("acme", "m", b"%d" % number) for number in range(2 * OUTAGE_PROMPTS)]
    for replica in ("r1", "r2"):
        for prompt in prompts:
            table.note_break(prompt, "acme", "m", replica)
    assert table.wait(prompts[-1]) == OUTAGE_PAUSE


def test_table_is_bounded_and_forgets_after_an_hour() -> None:
    table, clock = made()
    prompts = [table.digest("acme", "m", b"%d" % number) for number in range(MOST_PROMPTS + 10)]
    for prompt in prompts:
        table.note_break(prompt, "acme", "m", "r1")
    assert not table.forgive(prompts[0])
    assert table.forgive(prompts[-1])
    clock.now += REMEMBERED_SECONDS + 1
    table.note_break(table.digest("globex", "m", b"x"), "globex", "m", "r1")
    assert not table.has_suspects("acme", "m")


def test_digest_needs_the_installation_s_secret() -> None:
    assert Quarantine("a").digest("acme", "m", b"p") != Quarantine("b").digest("acme", "m", b"p")


def test_equal_prompts_that_one_crash_ends_are_one_break() -> None:
    table, clock = made()
    prompt = table.digest("acme", "m", b"Hello")
    assert not any(table.note_break(prompt, "acme", "m", "r1") for _ in range(5))
    clock.now += SAME_CRASH_SECONDS + 0.1
    assert table.note_break(prompt, "acme", "m", "r1"), "it was started again, and broke again"
