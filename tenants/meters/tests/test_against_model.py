"""Admissions, moves, settlements, renewals, crashes, reaping, late words, repeats, changes of limits, losses of Redis:
any sequence of them leaves the meters as a simple model has them. Nothing is ever negative; at rest nothing is held."""

import asyncio
import time
from typing import Any

import redis
import redis.asyncio
from django.conf import settings as django_settings
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tenants.meters import holds
from tenants.meters.holds import Ended, Gone, Lost, Refused, Taken, TooLarge
from tenants.meters.meter import CONCURRENCY, OUTPUT_TOKENS, Meter, meters_of
from tenants.meters.tests.model import Bucket, Hold, Model

BUCKET, GAUGE = "hr:m:key:k1:output_tokens", "hr:m:key:k1:concurrency"
LEASE = 60_000
ROOM, ROOMS = 2, (1, 2, 3)  # two requests fit into each of three rooms
amounts = st.integers(0, 12)


class Meters(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = redis.asyncio.Redis.from_url(django_settings.REDIS_URL)
        self.valkey = redis.Redis.from_url(django_settings.REDIS_URL)
        self.valkey.flushall()
        self.model = Model()
        self.limit, self.most = 60, 3
        self.number = 0

    def teardown(self) -> None:
        for request_id in list(self.model.living):
            self.settle(request_id, 1)
        self.check()
        assert self.valkey.keys("hr:hold:*") == []
        assert self.valkey.zcard(holds.HOLDS) == 0
        assert self.valkey.get(GAUGE) is None
        assert self.valkey.keys("hr:room:*") == []
        self.valkey.close()
        self.runner.run(self.client.aclose())
        self.runner.close()

    # --- what requests do ---------------------------------------------------------------------------------------------
    @rule(amount=amounts)
    def admit(self, amount: int) -> None:
        self.number += 1
        request_id = f"r{self.number}"
        began = self.now()
        said = self.ask(request_id, amount)
        assert said in self.model.verdicts(amount, self.limit, self.most, began, self.now())
        if said == "held":
            hold = self.model.living[request_id] = Hold(self.limit, self.most, amount)
            self.book(hold.limit, amount)
            assert self.ask(request_id, amount) == "held"  # its reply was lost: told again, nothing more is taken

    @precondition(lambda self: self.model.living)
    @rule(data=st.data(), used=amounts, times=st.integers(1, 2))
    def settle_one(self, data: st.DataObject, used: int, times: int) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.model.living)))
        for _ in range(times):
            self.settle(request_id, used)

    @precondition(lambda self: self.model.living)
    @rule(data=st.data(), room=st.sampled_from([0, *ROOMS]))
    def move_one(self, data: st.DataObject, room: int) -> None:
        """To a replica's room, to another's, or to one that has no room to count."""
        request_id = data.draw(st.sampled_from(sorted(self.model.living)))
        hold = self.model.living[request_id]
        is_full = room not in {0, hold.room} and self.model.room_taken(room) >= ROOM
        assert self.move(request_id, hold, room, hold.steps + 1) == ("refused" if is_full else "moved")
        if is_full:
            return
        hold.room, hold.steps = room, hold.steps + 1
        assert self.move(request_id, hold, room, hold.steps) == "moved"  # its reply was lost
        if hold.steps > 1:
            assert self.move(request_id, hold, ROOMS[0], hold.steps - 1) == "gone"  # it waited in a buffer

    @precondition(lambda self: self.model.living)
    @rule(data=st.data())
    def withdraw_one(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.model.living)))
        hold = self.model.living.pop(request_id)
        self.run(holds.withdraw(self.client, [request_id]))
        self.book(hold.limit, -hold.amount)
        self.model.ended.add(request_id)

    @rule(amount=amounts)
    def withdraw_before_it_is_admitted(self, amount: int) -> None:
        """The question comes after its withdrawal."""
        self.number += 1
        request_id = f"r{self.number}"
        self.run(holds.withdraw(self.client, [request_id]))
        assert self.ask(request_id, amount) == "ended"
        self.model.ended.add(request_id)

    @precondition(lambda self: self.model.ended)
    @rule(data=st.data())
    def repeat_after_the_end(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.model.ended)))
        assert self.run(holds.settle(self.client, request_id=request_id, used={}, event=b"{}")) == "ended"
        assert self.ask(request_id, 1) == "ended"
        assert self.move(request_id, Hold(60, 3, 1), ROOMS[0], 9) == "gone"
        self.run(holds.withdraw(self.client, [request_id]))
        assert holds.reap(self.valkey, request_id=request_id, used={}, event=b"{}", memory="{}") == "ended"

    # --- what processes do --------------------------------------------------------------------------------------------
    @precondition(lambda self: self.model.living)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Some requests are renewed no more."""
        for request_id in data.draw(st.sets(st.sampled_from(sorted(self.model.living)), min_size=1)):
            self.run(holds.renew(self.client, lease_ms=0, progress={request_id: b"{}"}))
            self.model.living[request_id].is_expired = True

    @precondition(lambda self: self.model.living)
    @rule()
    def renew(self) -> None:
        """A process that only seemed dead renews in time, too."""
        progress = dict.fromkeys(self.model.living, b'{"output_tokens":1}')
        known = progress | dict.fromkeys(self.model.reaped, b"") | dict.fromkeys(self.model.lost, b"")
        states = self.run(holds.renew(self.client, lease_ms=LEASE, progress=known))
        assert states == (
            dict.fromkeys(self.model.living, "held")
            | dict.fromkeys(self.model.reaped, "reaped")
            | dict.fromkeys(self.model.lost, "lost")
        )
        for hold in self.model.living.values():
            hold.is_expired = False

    @rule(used=amounts)
    def reap(self, used: int) -> None:
        time.sleep(0.002)  # leases end with their millisecond
        expired = {hold.request_id for hold in holds.expired(self.valkey)}
        assert expired == {key for key, hold in self.model.living.items() if hold.is_expired}
        for request_id, hold in list(self.model.living.items()):
            said = holds.reap(
                self.valkey, request_id=request_id, used={OUTPUT_TOKENS: used}, event=b'{"part":0}', memory=str(used)
            )
            assert said == ("settled" if hold.is_expired else "alive")
            if hold.is_expired:
                self.model.reaped[request_id] = self.model.living.pop(request_id)
                self.book(hold.limit, used - hold.amount)
                self.model.events += 1

    @precondition(lambda self: self.model.reaped)
    @rule(data=st.data(), more=amounts)
    def settle_late(self, data: st.DataObject, more: int) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.model.reaped)))
        hold = self.model.reaped.pop(request_id)
        tombstone = self.run(holds.settle(self.client, request_id=request_id, used={}, event=b"{}"))
        assert tombstone.startswith("reaped:")
        said = [self.correct(request_id, hold, tombstone, more) for _ in range(2)]
        assert said == ["corrected", "ended"]
        self.model.ended.add(request_id)

    @precondition(lambda self: self.model.lost)
    @rule(data=st.data(), times=st.integers(1, 2))
    def put_back(self, data: st.DataObject, times: int) -> None:
        """Its process has learnt that its hold is lost: it takes what it took, beyond the limits if need be."""
        request_id = data.draw(st.sampled_from(sorted(self.model.lost)))
        hold = self.model.living[request_id] = self.model.lost.pop(request_id)
        hold.is_expired = False
        taken = self.taken(hold.amount, hold.limit, hold.most, hold.room)
        lost = Lost(request_id=request_id, taken=taken, record=b"{}", progress=b"{}", step=hold.steps)
        for repeat in range(times):
            assert self.run(holds.rehold(self.client, lease_ms=LEASE, lost=[lost])) == {request_id: "held"}
            if not repeat:
                self.book(hold.limit, hold.amount)

    @precondition(lambda self: self.model.lost)
    @rule(data=st.data())
    def settle_lost(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.model.lost)))
        del self.model.lost[request_id]
        assert self.run(holds.settle(self.client, request_id=request_id, used={}, event=b"{}")) == "lost"
        self.model.ended.add(request_id)
        self.model.events += 1

    # --- what operators and fate do -----------------------------------------------------------------------------------
    @rule(limit=st.sampled_from([6, 60, 600]), most=st.integers(1, 4))
    def change_limits(self, limit: int, most: int) -> None:
        self.limit, self.most = limit, most

    @rule()
    def lose_scripts(self) -> None:
        self.valkey.script_flush()

    @precondition(lambda self: self.number % 9 == 8)
    @rule()
    def lose_everything(self) -> None:
        self.valkey.flushall()
        lost = self.model.lost | self.model.living | self.model.reaped | dict.fromkeys(self.model.ended, Hold(1, 1, 1))
        self.model = Model(lost=lost)

    # --- what must hold -----------------------------------------------------------------------------------------------
    @invariant()
    def check(self) -> None:
        model = self.model
        assert int(self.valkey.get(GAUGE) or 0) == model.running
        for room in ROOMS:
            assert int(self.valkey.get(f"hr:room:{room}") or 0) == model.room_taken(room)
        assert {key.decode() for key, _ in self.valkey.zscan_iter(holds.HOLDS)} == set(model.living)
        assert self.valkey.xlen(holds.USAGE) == model.events
        debt, _ = self.stored()
        assert debt == model.bucket.debt or (debt == 0 and model.bucket.debt_at(self.now(), 600) == 0)

    # --- doing it -----------------------------------------------------------------------------------------------------
    def settle(self, request_id: str, used: int) -> None:
        said = self.run(
            holds.settle(self.client, request_id=request_id, used={OUTPUT_TOKENS: used}, event=b'{"part":0}')
        )
        if (hold := self.model.living.pop(request_id, None)) is None:
            assert said == "ended"
            return
        assert said == "settled"
        self.book(hold.limit, used - hold.amount)
        self.model.ended.add(request_id)
        self.model.events += 1

    def correct(self, request_id: str, hold: Hold, tombstone: str, more: int) -> str:
        event = b'{"part":1}' if more else b""
        taken = self.taken(hold.amount, hold.limit, hold.most).as_json()
        change = {OUTPUT_TOKENS: more}
        said: str = self.run(
            holds.correct(
                self.client, request_id=request_id, tombstone=tombstone, event=event, taken=taken, more=change
            )
        )
        if said == "corrected" and more:
            self.book(hold.limit, more)
            self.model.events += 1
        return said

    def ask(self, request_id: str, amount: int) -> str:
        taken = self.taken(amount, self.limit, self.most)
        try:
            self.run(holds.admit(self.client, request_id=request_id, lease_ms=LEASE, taken=taken, record=b"{}"))
        except Refused:
            return "refused"
        except TooLarge:
            return "too large"
        except Ended:
            return "ended"
        return "held"

    def move(self, request_id: str, hold: Hold, room: int, step: int) -> str:
        taken = self.taken(hold.amount, hold.limit, hold.most, room)
        call = holds.move(self.client, request_id=request_id, step=step, taken=taken, record=b"{}", progress=b"{}")
        try:
            self.run(call)
        except Refused:
            return "refused"
        except Gone:
            return "gone"
        return "moved"

    def taken(self, amount: int, limit: int, most: int, room: int = 0) -> Taken:
        meters = meters_of("key", "k1", {"output_tokens_per_minute": limit, "concurrency": most})
        if room:
            meters.append(Meter("gauge", f"hr:room:{room}", ROOM, CONCURRENCY, "replica"))
        return Taken(meters, {OUTPUT_TOKENS: amount, CONCURRENCY: 1})

    def book(self, limit: int, amount: int) -> None:
        """Note a change of the bucket, at the time the script read from its clock; 0 debt is kept nowhere."""
        _, at = self.stored()
        self.model.bucket.add(amount, at or self.now(), limit)
        if not at:
            assert self.model.bucket.debt <= 5 * 600, "debt was forgotten"  # a few ms of the clock
            self.model.bucket = Bucket()

    def stored(self) -> tuple[int, int]:
        stored: Any = self.valkey.hmget(BUCKET, ["debt", "at"])
        return int(stored[0] or 0), int(stored[1] or 0)

    def now(self) -> int:
        clock: Any = self.valkey.time()
        seconds, micros = clock
        return int(seconds) * 1000 + int(micros) // 1000

    def run(self, call: Any) -> Any:
        return self.runner.run(call)


def test_it_agrees_with_a_model() -> None:
    checks = list(HealthCheck)
    options = settings(
        max_examples=40, stateful_step_count=40, deadline=None, database=None, suppress_health_check=checks
    )
    run_state_machine_as_test(Meters, settings=options)
