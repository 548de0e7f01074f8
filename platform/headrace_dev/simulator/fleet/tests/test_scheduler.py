"""The scheduler: prompts first and in chunks, then everyone a token; room is counted, and found by retraction."""

import random

import pytest

from headrace_dev.simulator.fleet.scheduler import QueueFull, Scheduler, TooLong
from headrace_dev.simulator.fleet.tests.toys import COSTS, Driven, profile, request


def balanced(scheduler: Scheduler) -> bool:
    requests = [*scheduler.running, *([scheduler.reading] if scheduler.reading else [])]
    private = sum(r.private for r in requests)
    cache = scheduler.cache
    return cache.free + cache.locked + cache.idle + private == cache.total


def test_it_reads_a_prompt_then_says_a_token_a_step() -> None:
    driven = Driven(Scheduler(profile()))
    one = request("one", 160, 3)
    driven.scheduler.add(one, 0.0)
    driven.run()
    assert one.finish == "stop"
    assert [len(step.reads) for step in driven.steps] == [1, 0, 0]
    assert driven.steps[0].seconds == pytest.approx(COSTS.step + 160 * COSTS.token)
    assert driven.steps[1].seconds == pytest.approx(COSTS.step + COSTS.weights + 160 * COSTS.context)
    assert driven.steps[2].seconds == pytest.approx(COSTS.step + COSTS.weights + 161 * COSTS.context)
    assert one.first_at == pytest.approx(driven.steps[0].seconds)
    assert one.ended_at == pytest.approx(driven.now)


def test_it_reads_a_long_prompt_in_chunks_while_nobody_decodes() -> None:
    driven = Driven(Scheduler(profile(chunk=64)))
    short, long = request("short", 32, 20), request("long", 200, 2)
    driven.scheduler.add(short, 0.0)
    driven.step()
    driven.scheduler.add(long, driven.now)
    for _ in range(4):
        driven.step()
    assert [step.reads[0][1] for step in driven.steps[1:]] == [64, 128, 192, 200]
    assert short.generated == 1
    driven.step()
    assert (short.generated, long.generated) == (2, 2)


def test_it_fills_a_step_with_several_prompts() -> None:
    driven = Driven(Scheduler(profile(chunk=96)))
    for name in "abc":
        driven.scheduler.add(request(name, 40, 2), 0.0)
    driven.step()
    assert [(r.rid, end) for r, end in driven.steps[0].reads] == [("a", 40), ("b", 40), ("c", 16)]
    driven.step()
    assert [(r.rid, end) for r, end in driven.steps[1].reads] == [("c", 40)]


def test_it_finds_what_was_read_before_even_while_in_use() -> None:
    driven = Driven(Scheduler(profile()))
    first, second = request("first", 200, 30, shared=160), request("second", 200, 30, shared=160)
    driven.scheduler.add(first, 0.0)
    driven.step()
    driven.scheduler.add(second, driven.now)
    driven.step()
    assert (first.cached, second.cached) == (0, 160)
    assert driven.scheduler.cache.locked == 10 + 2 + 2  # the shared blocks once
    driven.run()
    assert driven.scheduler.counters.hit_tokens == 160


def test_it_computes_at_least_the_last_token_of_a_known_prompt() -> None:
    driven = Driven(Scheduler(profile()))
    for _ in range(2):
        driven.scheduler.add(request("same", 160, 2), driven.now)
        driven.run()
    assert driven.scheduler.counters.hit_tokens == 144


def test_it_knows_an_answer_as_the_next_turns_prefix() -> None:
    driven = Driven(Scheduler(profile()))
    turn = request("talk", 64, 33)
    driven.scheduler.add(turn, 0.0)
    driven.run()
    following = request("talk", 128, 2)
    driven.scheduler.add(following, driven.now)
    driven.run()
    assert following.cached == 96  # 64 + 32 of the answer: its last token has no KV


def test_it_lets_the_next_wait_where_room_is_short() -> None:
    """Room is kept for all of a newcomer's possible output."""
    driven = Driven(Scheduler(profile(kv_tokens=320)))
    first, second = request("first", 100, 60), request("second", 100, 60)
    driven.scheduler.add(first, 0.0)
    driven.scheduler.add(second, 0.0)
    driven.step()
    assert [r.rid for r in driven.scheduler.running] == ["first"]
    driven.run()
    assert second.first_at is not None
    assert first.ended_at is not None
    assert second.first_at > first.ended_at


def test_it_retracts_the_shortest_answer_when_room_runs_out() -> None:
    """Three that were let in because few tokens were expected of each, and said more."""
    driven = Driven(Scheduler(profile(kv_tokens=640)))
    driven.scheduler.ratio = 0.1
    requests = [request(name, 100, 150) for name in "abc"]
    for one in requests:
        driven.scheduler.add(one, driven.now)
        driven.step()
        driven.step()
        assert balanced(driven.scheduler)
    while driven.step() is not None:
        assert balanced(driven.scheduler)
    assert driven.scheduler.counters.retractions >= 1
    assert requests[0].retracted == 0
    assert [r.finish for r in requests] == ["stop"] * 3
    assert [r.generated for r in requests] == [150] * 3


def test_it_serves_higher_priorities_first() -> None:
    driven = Driven(Scheduler(profile(max_running=1)))
    for name, priority in (("low", 0), ("high", 5), ("middle", 3), ("high too", 5)):
        driven.scheduler.add(request(name, 32, 2, priority=priority), 0.0)
    driven.run()
    assert [r.rid for step in driven.steps for r, _ in step.reads] == ["high", "high too", "middle", "low"]


def test_it_preempts_what_ranks_far_lower() -> None:
    """By more than 10, as SGLang's threshold has it."""
    driven = Driven(Scheduler(profile(max_running=1)))
    low, near, far = request("low", 32, 9), request("near", 32, 2, priority=10), request("far", 32, 2, priority=11)
    driven.scheduler.add(low, 0.0)
    driven.step()
    driven.scheduler.add(near, driven.now)
    driven.step()
    assert driven.scheduler.running == [low]
    driven.scheduler.add(far, driven.now)
    driven.step()
    assert driven.scheduler.running == [far]
    driven.run()
    assert low.retracted == 1
    assert (low.finish, low.generated) == ("stop", 9)


def test_it_ends_aborted_requests_wherever_they_are() -> None:
    driven = Driven(Scheduler(profile(max_running=1, chunk=32)))
    running, reading, waiting = request("a", 32, 50), request("b", 96, 5), request("c", 32, 5)
    driven.scheduler.add(running, 0.0)
    driven.step()
    driven.scheduler.add(waiting, 0.0)
    driven.scheduler.abort(running)
    driven.scheduler.abort(waiting)
    driven.scheduler.add(reading, driven.now)
    told = driven.step()
    assert told is not None
    assert {r.rid for r in told.ended} == {"a", "c"}
    driven.scheduler.abort(reading)
    driven.run()
    assert [r.rid for r in driven.scheduler.settle()] == ["b"]
    assert {r.finish for r in (running, reading, waiting)} == {"abort"}
    assert driven.scheduler.cache.locked == 0
    assert balanced(driven.scheduler)


def test_it_refuses_what_can_never_fit_or_has_no_place_in_the_queue() -> None:
    scheduler = Scheduler(profile(kv_tokens=320, max_queued=1))
    with pytest.raises(TooLong):
        scheduler.add(request("long", 400, 1), 0.0)
    scheduler.add(request("a", 32, 2), 0.0)
    with pytest.raises(QueueFull):
        scheduler.add(request("b", 32, 2), 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_it_serves_everyone_and_loses_no_block(seed: int) -> None:
    source = random.Random(seed)
    driven = Driven(Scheduler(profile(kv_tokens=960, chunk=128, max_running=6)))
    requests = []
    for k in range(60):
        shared = source.choice((0, 64, 128))
        one = request(
            f"r{k}",
            shared + source.randint(1, 200),
            source.randint(1, 80),
            shared=shared,
            priority=source.choice((0, 5, 20)),
            most=source.randint(1, 100),
        )
        requests.append(one)
        driven.scheduler.add(one, driven.now)
        if source.random() < 0.1:
            driven.scheduler.abort(source.choice(requests))
        for _ in range(source.randint(0, 12)):
            driven.step()
            assert balanced(driven.scheduler)
    driven.run()
    assert driven.scheduler.cache.locked == 0
    assert balanced(driven.scheduler)
    for one in requests:
        assert one.finish
        assert one.aborted or one.generated == min(one.output, one.max_tokens)
