"""The fair queue in Redis goes by the rule in plain Python, whatever comes and goes; and nobody waits for nothing."""

import json
from importlib.resources import files
from typing import Any

import hypothesis.strategies as st
import redis
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as quick

from routing.fairness.order import CEILING, CLASSES, FairOrder

LUA = files("tenants.meters") / "lua"
QUEUE = "".join((LUA / f"{name}.lua").read_text() for name in ("kinds", "rooms", "crowding", "queue"))
POOL, ROOM = "h100", "hr:m:room:h100/r1"
NOW = 1000
WEIGHTS = {"x": 2, "y": 0.5}  # of projects


class Queue:
    """The library alone, on a Redis of its own, with one replica of so much room."""

    def __init__(self, limit: int = 1000) -> None:
        self.redis = redis.Redis.from_url(settings.REDIS_URL, decode_responses=True)
        self.redis.flushall()
        self.limit = limit

    def run(self, code: str, *arguments: Any) -> Any:
        return self.redis.eval(f"{QUEUE}\n{code}", 0, *arguments)

    def join(
        self,
        name: str,
        tenant: str,
        priority: str,
        cost: float,
        need: int = 100,
        keeps_from: int = NOW + 1,
        project: str = "main",
    ) -> None:
        self.redis.hset(f"hr:hold:{name}", mapping={"meters": "[]", "expires": NOW + 1})
        place = ["room", ROOM, str(self.limit), str(need), "room"]
        waiter = {"t": tenant, "c": priority, "w": 1, "v": cost, "ch": "grants", "p": [place], "a": keeps_from}
        waiter |= {"r": project, "rw": WEIGHTS.get(project, 1)}
        self.run("queue.join(ARGV[1], ARGV[2], ARGV[3])", POOL, name, json.dumps(waiter))

    def leave(self, name: str) -> None:
        self.run("queue.leave(ARGV[1], ARGV[2])", POOL, name)

    def grant(self) -> None:
        self.run("queue.grant(ARGV[1], tonumber(ARGV[2]))", POOL, NOW)

    def kept(self, priority: str) -> bool:
        """Whether newcomers of that class leave the replica alone."""
        key: str = self.run("return queue.kept(ARGV[1], ARGV[2], tonumber(ARGV[3])) or ''", POOL, priority, NOW)
        return key == ROOM

    def granted(self, name: str) -> bool:
        return self.redis.hget(f"hr:hold:{name}", "granted") == ROOM

    def free(self, name: str) -> None:
        """A granted request ends and gives its room back."""
        ((_, key, _, amount, _),) = json.loads(self.redis.hget(f"hr:hold:{name}", "meters") or "[]")
        self.redis.decrby(key, int(amount))
        self.redis.delete(f"hr:hold:{name}")

    @property
    def held(self) -> int:
        return int(self.redis.get(ROOM) or 0)

    def waiting(self) -> set[str]:
        return {str(name) for name in self.redis.hkeys(f"hr:q:{POOL}:w")}


moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("join"),
            st.sampled_from("abc"),
            st.sampled_from("xy"),
            st.sampled_from(CLASSES),
            st.integers(1, 50),
            st.booleans(),
        ),
        st.tuples(st.just("leave"), st.integers(0, 30)),
        st.tuples(st.just("free"), st.integers(0, 30)),
        st.tuples(st.just("used"), st.integers(0, 30), st.integers(-40, 40)),
    ),
    max_size=60,
)


@given(moves)
@quick(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_goes_by_the_rule(moves: list[tuple[Any, ...]]) -> None:
    queue, order = Queue(limit=400), FairOrder()
    asked: dict[str, tuple[str, str, str]] = {}
    running: list[str] = []
    for number, (verb, *rest) in enumerate(moves):
        waiting = sorted(queue.waiting())
        if verb == "join":
            tenant, project, priority, cost, is_patient = rest
            keeps_from = NOW + 1 if is_patient else NOW
            name = f"{number:03d}"
            asked[name] = (tenant, priority, project)
            queue.join(name, tenant, priority, cost, keeps_from=keeps_from, project=project)
            terms = {"project": project, "project_weight": WEIGHTS[project]}
            order.join(name, tenant=tenant, priority=priority, cost=cost, keeps_from=keeps_from, **terms)
        elif verb == "leave" and waiting:
            name = waiting[rest[0] % len(waiting)]
            queue.leave(name)
            order.leave(name)
        elif verb == "free" and running:
            queue.free(running.pop(rest[0] % len(running)))
        elif verb == "used" and running:
            tenant, priority, project = asked[running[rest[0] % len(running)]]
            arguments = (POOL, priority, tenant, rest[1], project, WEIGHTS[project])
            queue.run(
                "queue.serve(ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]))", *arguments
            )
            order.served(tenant, priority, rest[1], project=project, project_weight=WEIGHTS[project])
        held = queue.held
        queue.grant()
        while (turn := _fitting(order, asked, held, queue.limit)) is not None:
            order.granted(turn)
            running.append(turn)
            held += 100
            assert queue.granted(turn), (turn, moves[: number + 1])
        assert queue.held == held == 100 * len(running)
        assert queue.waiting() == set(order._waiters)
        assert [queue.kept(one) for one in CLASSES] == [order.keeps_room(one, NOW) is not None for one in CLASSES]
    for name in queue.waiting():
        queue.leave(name)
    assert [key for key in map(str, queue.redis.keys("hr:q:*")) if not key.endswith(":s")] == []


def _fitting(order: FairOrder, asked: dict[str, tuple[str, str, str]], held: int, limit: int) -> str | None:
    for turn in order.turns():
        if held == 0 or held + 100 <= limit * (1 if order.is_owed(turn) else CEILING[asked[turn][1]]):
            return turn
    return None


def test_a_waiter_whose_process_died_is_passed_over() -> None:
    queue = Queue(limit=100)
    queue.join("dead", "acme", "standard", 1)
    queue.join("alive", "acme", "standard", 1)
    queue.redis.hset("hr:hold:dead", "expires", NOW)
    queue.grant()
    assert queue.granted("alive")
    assert queue.waiting() == set()


def test_a_large_request_is_not_passed_by_small_ones_for_ever() -> None:
    queue = Queue(limit=1000)
    queue.join("first", "acme", "standard", 1, need=500)
    queue.grant()
    queue.join("large", "acme", "standard", 1, need=900)
    queue.join("small", "globex", "standard", 1, need=100)
    queue.run("queue.serve(ARGV[1], 'standard', 'globex', 1000)", POOL)
    queue.grant()
    assert queue.waiting() == {"large", "small"}
    queue.free("first")
    queue.grant()
    assert queue.granted("large")


def test_those_who_go_later_keep_nobody_out_of_the_queue() -> None:
    queue = Queue()
    for number in range(3):
        queue.join(f"b{number}", "acme", "batch", 1)
    queue.join("s", "globex", "standard", 1)
    counted = {
        priority: queue.run("return {queue.length(ARGV[1], 'acme', ARGV[2])}", POOL, priority) for priority in CLASSES
    }
    assert counted == {"interactive": [0, 0], "standard": [1, 0], "batch": [4, 3]}


def test_one_larger_than_any_room_runs_alone() -> None:
    queue = Queue(limit=1000)
    queue.join("huge", "acme", "batch", 1, need=5000)
    queue.grant()
    assert queue.granted("huge")


def test_it_takes_the_first_of_its_places_that_has_room() -> None:
    queue = Queue()
    queue.redis.hset("hr:hold:x", mapping={"meters": '[["gauge","k","1","1","concurrency"]]', "expires": NOW + 1})
    places = [["room", ROOM, "1000", "100", "room"], ["room", "hr:m:room:h100/r2", "1000", "300", "room"]]
    queue.redis.set(ROOM, 950)
    waiter = {"t": "acme", "c": "interactive", "w": 1, "v": 1, "ch": "grants", "p": places, "a": NOW + 1}
    queue.run("queue.join(ARGV[1], ARGV[2], ARGV[3])", POOL, "x", json.dumps(waiter))
    queue.grant()
    assert queue.redis.get("hr:m:room:h100/r2") == "300"
    assert [meter[1] for meter in json.loads(queue.redis.hget("hr:hold:x", "meters") or "")] == ["k", places[1][1]]


def share_of_batch(need: int) -> float:
    """What part of the service went to batch, each of whose requests takes `need`, while chats keep a replica full."""
    queue, running, served = Queue(limit=1000), list[str](), 0
    for number in range(10):
        queue.join(f"b{number}", "acme", "batch", need, need=need)
    waiting = [f"b{number}" for number in range(10)]
    for number in range(160):
        name = f"i{number}"
        queue.join(name, "globex", "interactive", 100)
        waiting.append(name)
        if number < 20:
            continue
        queue.grant()
        left = queue.waiting()
        running += [name for name in waiting if name not in left]
        waiting = [name for name in waiting if name in left]
        queue.free(ended := running.pop(0))
        served += need if ended.startswith("b") else 100
    return sum(need for number in range(10) if f"b{number}" not in waiting) / served


def test_a_lower_class_gets_its_share_of_a_replica_that_a_higher_one_keeps_full() -> None:
    assert 0.02 <= share_of_batch(100) <= 0.08


def test_it_gets_it_although_its_requests_are_larger_than_what_comes_free_at_a_time() -> None:
    assert 0.02 <= share_of_batch(300) <= 0.08
