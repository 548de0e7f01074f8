"""Any sequence of admissions, settlements, withdrawals, moves, crashes, reaping, late words, repeats, changed limits,
new budgets, drains, rebuilds, losses and holds put back after them conserves money: what is spent and held is what a
simple model has of it, to the unit; nothing is negative; at rest nothing is held."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio
from django.conf import settings as django_settings
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tenants.meters import counters, holds
from tenants.meters.counters import Wanted
from tenants.meters.holds import Ended, Exhausted, Held, Lost, Rebuilding, Taken
from tenants.meters.meter import COST, Meter

HARD, SOFT, LATE = "hr:b:1:0", "hr:b:2:0", "hr:b:3:0"
UNIT = 10**15 + 1  # a few of these are beyond the whole numbers of Lua
LEASE = 60_000
amounts = st.integers(0, 6)


@dataclass
class Hold:
    amount: int
    names: set[str]
    is_expired: bool = False
    steps: int = 0


class Money(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = redis.asyncio.Redis.from_url(django_settings.REDIS_URL)
        self.valkey = redis.Redis.from_url(django_settings.REDIS_URL)
        self.valkey.flushall()
        self.limit, self.number = 20, 0
        self.budgets = [HARD, SOFT]
        self.made: set[str] = set()  # the counters that are there
        self.ledger = self.stream = 0  # what is charged, by where it stands
        self.living: dict[str, Hold] = {}
        self.reaped: dict[str, Hold] = {}
        self.lost: dict[str, Hold] = {}
        self.ended: set[str] = set()
        self.rebuild()

    def teardown(self) -> None:
        for request_id in list(self.living):
            self.settle(request_id, 1)
        self.rebuild()
        for counter in counters.read(self.valkey, self.budgets):
            assert counter is not None
            assert (counter.spent, counter.held) == ((self.ledger + self.stream) * UNIT, 0)
        self.valkey.close()
        self.runner.run(self.client.aclose())
        self.runner.close()

    # --- what requests do ---------------------------------------------------------------------------------------------
    @rule(amount=amounts)
    def admit(self, amount: int) -> None:
        self.number += 1
        request_id = f"r{self.number}"
        said = self.ask(request_id, amount)
        assert said == self.verdict(amount)
        if said == "held":
            self.living[request_id] = Hold(amount, set(self.budgets))
            assert self.ask(request_id, amount) == "held"

    @precondition(lambda self: self.living)
    @rule(data=st.data(), used=amounts, times=st.integers(1, 2))
    def settle_one(self, data: st.DataObject, used: int, times: int) -> None:
        request_id = self.one_of(data, self.living)
        for _ in range(times):
            self.settle(request_id, used)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def withdraw_one(self, data: st.DataObject) -> None:
        request_id = self.one_of(data, self.living)
        del self.living[request_id]
        for _ in range(2):
            self.run(holds.withdraw(self.client, [request_id]))
        self.ended.add(request_id)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def move_one(self, data: st.DataObject) -> None:
        """It goes on elsewhere, where its process knows no budget that was made since."""
        request_id = self.one_of(data, self.living)
        hold = self.living[request_id]
        hold.steps += 1
        for _ in range(2):
            taken = self.taken(hold.amount, [name for name in self.budgets if name != LATE])
            self.run(
                holds.move(
                    self.client,
                    request_id=request_id,
                    step=hold.steps,
                    taken=taken,
                    record=self.record(request_id),
                    progress=b"{}",
                )
            )

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def repeat_after_the_end(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.ended)))
        assert self.settle_as(request_id, 3) == "ended"
        assert self.ask(request_id, 1) == "ended"

    # --- what processes do --------------------------------------------------------------------------------------------
    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        for request_id in data.draw(st.sets(st.sampled_from(sorted(self.living)), min_size=1)):
            self.run(holds.renew(self.client, lease_ms=0, progress={request_id: b"{}"}))
            self.living[request_id].is_expired = True

    @precondition(lambda self: self.living)
    @rule()
    def renew(self) -> None:
        self.run(holds.renew(self.client, lease_ms=LEASE, progress=dict.fromkeys(self.living, b"{}")))
        for hold in self.living.values():
            hold.is_expired = False

    @rule(used=amounts)
    def reap(self, used: int) -> None:
        time.sleep(0.002)  # leases end with their millisecond
        for hold in holds.expired(self.valkey):
            event = self.event(hold.request_id, used)
            said = holds.reap(
                self.valkey, request_id=hold.request_id, used={COST: used * UNIT}, event=event, memory=str(used)
            )
            assert said == "settled"
            self.reaped[hold.request_id] = self.living.pop(hold.request_id)
            self.stream += used

    @precondition(lambda self: self.reaped)
    @rule(data=st.data(), more=amounts)
    def settle_late(self, data: st.DataObject, more: int) -> None:
        request_id = self.one_of(data, self.reaped)
        hold = self.reaped.pop(request_id)
        tombstone = self.settle_as(request_id, 1)
        for said in ("corrected", "ended"):
            answer = self.run(
                holds.correct(
                    self.client,
                    request_id=request_id,
                    tombstone=tombstone,
                    event=self.event(request_id, more, part=1) if more else b"",
                    taken=self.taken(hold.amount, sorted(hold.names)).as_json(),
                    more={COST: more * UNIT},
                )
            )
            assert answer == said
        self.stream += more
        self.ended.add(request_id)

    @precondition(lambda self: self.lost)
    @rule(data=st.data(), used=amounts)
    def settle_lost(self, data: st.DataObject, used: int) -> None:
        request_id = self.one_of(data, self.lost)
        hold = self.lost.pop(request_id)
        said = [self.settle_as(request_id, used, sorted(hold.names)) for _ in range(2)]
        assert said == ["lost", "ended"]
        self.stream += used
        self.ended.add(request_id)

    @precondition(lambda self: self.lost)
    @rule(data=st.data(), times=st.integers(1, 2))
    def put_back(self, data: st.DataObject, times: int) -> None:
        """Their process renews their leases, and learns that they are lost."""
        for request_id in data.draw(st.sets(st.sampled_from(sorted(self.lost)), min_size=1)):
            assert self.renewed(request_id) == "lost"
            hold = self.living[request_id] = self.lost.pop(request_id)
            hold.is_expired = False
            for _ in range(times):
                assert self.rehold(request_id, hold) == "held"
            assert self.renewed(request_id) == "held"

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def put_back_after_the_end(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.ended)))
        assert self.rehold(request_id, Hold(3, set(self.budgets))) == "ended"

    @rule()
    def drain(self) -> None:
        self.ledger, self.stream = self.ledger + self.stream, 0
        self.valkey.xtrim(holds.USAGE, maxlen=0, approximate=False)

    @rule()
    def rebuild(self) -> None:
        """Each is set, so that two at once are as one."""
        for _ in range(2):
            wanted = [
                Wanted(name, "acme", "", "", "", "2026-01-01", "2026-02-01", self.ledger * UNIT, None)
                for name in self.budgets
            ]
            counters.rebuild(self.valkey, wanted)
        assert counters.trust(self.valkey, counters.run_id(self.valkey))
        self.made = set(self.budgets)
        for hold in self.living.values():
            hold.names |= self.made

    # --- what operators and fate do -----------------------------------------------------------------------------------
    @rule(limit=st.integers(0, 60))
    def change_the_budget(self, limit: int) -> None:
        self.limit = limit

    @precondition(lambda self: LATE not in self.budgets)
    @rule()
    def make_a_budget(self) -> None:
        self.budgets.append(LATE)
        self.rebuild()

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def lose_a_counter(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.made)))
        self.valkey.delete(name)
        self.made.remove(name)

    @precondition(lambda self: self.number % 7 == 6)
    @rule()
    def lose_everything(self) -> None:
        self.drain()
        self.valkey.flushall()
        # The words of the settled ones are forgotten with their tombstones; nobody says them again.
        self.lost |= self.living | self.reaped
        self.living, self.reaped, self.ended, self.made = {}, {}, set(), set()

    # --- what must hold -----------------------------------------------------------------------------------------------
    @invariant()
    def check(self) -> None:
        for name, counter in zip(self.budgets, counters.read(self.valkey, self.budgets), strict=True):
            assert (counter is not None) == (name in self.made)
            if counter is not None:
                assert counter.spent == (self.ledger + self.stream) * UNIT, name
                assert counter.held == sum(h.amount for h in self.living.values() if name in h.names) * UNIT, name

    # --- doing it -----------------------------------------------------------------------------------------------------
    def verdict(self, amount: int) -> str:
        """What admission must say, of the hard budget alone."""
        if HARD not in self.made:
            return "rebuilding"
        if self.ledger + self.stream + amount > self.limit:
            return "exhausted"
        held = sum(hold.amount for hold in self.living.values())
        return "held back" if self.ledger + self.stream + held + amount > self.limit else "held"

    def ask(self, request_id: str, amount: int) -> str:
        call = holds.admit(
            self.client,
            request_id=request_id,
            lease_ms=LEASE,
            taken=self.taken(amount, self.budgets),
            record=self.record(request_id),
        )
        try:
            self.run(call)
        except Held:
            return "held back"
        except Exhausted as said:
            return "exhausted" if said.left == max(0, self.limit - self.ledger - self.stream) * UNIT else str(said.left)
        except Rebuilding:
            return "rebuilding"
        except Ended:
            return "ended"
        return "held"

    def renewed(self, request_id: str) -> str:
        states = self.run(holds.renew(self.client, lease_ms=LEASE, progress={request_id: b"{}"}))
        return str(states[request_id])

    def rehold(self, request_id: str, hold: Hold) -> str:
        lost = Lost(
            request_id=request_id,
            taken=self.taken(hold.amount, sorted(hold.names)),
            record=self.record(request_id),
            progress=b"{}",
            step=hold.steps,
        )
        return str(self.run(holds.rehold(self.client, lease_ms=LEASE, lost=[lost]))[request_id])

    def settle(self, request_id: str, used: int) -> None:
        said = self.settle_as(request_id, used)
        if self.living.pop(request_id, None) is None:
            assert said == "ended"
            return
        assert said == "settled"
        self.stream += used
        self.ended.add(request_id)

    def settle_as(self, request_id: str, used: int, names: list[str] | None = None) -> str:
        taken = self.taken(0, names or []).as_json()
        event = self.event(request_id, used)
        call = holds.settle(self.client, request_id=request_id, used={COST: used * UNIT}, event=event, taken=taken)
        return str(self.run(call))

    def taken(self, amount: int, names: list[str]) -> Taken:
        kinds = {HARD: "budget", SOFT: "soft_budget", LATE: "soft_budget"}
        return Taken([Meter(kinds[n], n, self.limit * UNIT, COST, n) for n in names], {COST: amount * UNIT})

    def record(self, request_id: str) -> bytes:
        who = {"tenant": "acme", "project": "web", "key": "k1", "model": "demo", "admitted_at": "2026-01-15"}
        return json.dumps(who | {"request_id": request_id}).encode()

    def event(self, request_id: str, cost: int, part: int = 0) -> bytes:
        return json.dumps(json.loads(self.record(request_id)) | {"part": part, "cost_nano": cost * UNIT}).encode()

    def one_of(self, data: st.DataObject, requests: dict[str, Hold]) -> str:
        return str(data.draw(st.sampled_from(sorted(requests))))

    def run(self, call: Any) -> Any:
        return self.runner.run(call)


def test_it_conserves_money() -> None:
    options = settings(
        max_examples=50,
        stateful_step_count=40,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Money, settings=options)
