"""SQL, Lua and Python count the same requests in a budget: all scopes, all requests, each request a bit of the sum."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest
import redis

from billing import drain
from billing.budgets import book
from billing.budgets import counters as budgets
from billing.budgets.counters import Part
from billing.models import Budget
from billing.periods import read_zones
from billing.tests.stream import append, connect, usage_event
from tenants.meters import counters
from tenants.meters.holds import HOLDS, USAGE
from tenants.meters.rebuilding import Wanted
from tenants.meters.scope import Scope
from tenants.meters.scripts import REBUILD, Argument
from tenants.tests.cast import make_tenant, sql

pytestmark = pytest.mark.django_db

NOW = datetime(2036, 10, 15, 12, tzinfo=UTC)
CENT = 10**7  # nano-units
REQUESTS = [Scope(*names) for names in product("ab", repeat=3)]
SCOPES = [Scope(*names) for names in product(("", "a", "b"), repeat=3)]


def expected(scope: Scope) -> int:
    """Cents of all requests that count: request n costs 2 ** n."""
    return sum(2**number for number, request in enumerate(REQUESTS) if scope.covers(request))


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with connect() as client:
        yield client


@pytest.fixture
def parts() -> list[Part]:
    """The present window of a budget of each scope."""
    make_tenant()
    made = [
        Budget(pk=number, tenant_id="acme", project=scope.project, key=scope.key, model=scope.model, period="month")
        for number, scope in enumerate(SCOPES, 1)
    ]
    return budgets.current(made, NOW, zones=read_zones())


def events() -> list[dict[str, object]]:
    """One of each request, and one of each of another tenant, which nobody's budget here counts."""
    return [
        usage_event(
            NOW, tenant=tenant, **request._asdict(), cost=str(2**number / 100), cost_nano=2**number * CENT,
            rates=["10000", "10000", "0"], price="demo@1",
            input_tokens=2**number, cached_input_tokens=0, output_tokens=1, reasoning_tokens=0,
        )
        for tenant in ("acme", "globex")
        for number, request in enumerate(REQUESTS)
    ]  # fmt: skip


def test_scopes_tell_the_requests_apart() -> None:
    assert {expected(scope) for scope in SCOPES if all(scope)} == {2**number for number in range(len(REQUESTS))}
    assert expected(Scope("", "", "")) == 2 ** len(REQUESTS) - 1


def test_the_ledgers_sums_count_what_the_scope_covers(valkey: "redis.Redis", parts: list[Part]) -> None:
    make_tenant("globex")
    sql("SELECT headrace_usage_partition('2036-10-01')")
    append(valkey, *events())
    drain.drain_all(valkey)
    assert [total // CENT for total in budgets.ledger_sums(parts)] == [expected(scope) for scope in SCOPES]


@pytest.mark.parametrize("by", ["python", "lua"])
def test_a_rebuild_counts_what_the_scope_covers(valkey: "redis.Redis", parts: list[Part], by: str) -> None:
    """Of the stream and of what runs; Lua does so for what came after Python had read."""
    append(valkey, *events())
    for number, event in enumerate(events()):
        cost = str(2 ** (number % len(REQUESTS)) * CENT)
        valkey.hset(f"hr:hold:h{number}", mapping={"record": json.dumps(event), "meters": "[]", "cost": cost})
        valkey.zadd(HOLDS, {f"h{number}": 2_200_000_000_000})
    wanted = [
        Wanted(
            part.key, "acme", *scope, first="2036-10-01T00:00:00.000Z", last="2036-11-01T00:00:00.000Z",
            ledger=0, expires_ms=None,
        )
        for part, scope in zip(parts, SCOPES, strict=True)
    ]  # fmt: skip
    if by == "python":
        counters.rebuild(valkey, wanted)
    else:
        valkey.hset("weights", "", "")
        arguments: list[Argument] = ["0-0", 1000]
        for one in wanted:
            arguments += [0, 0, one.tenant, one.project, one.api_key, one.model, one.first, one.last, ""]
        keys = [HOLDS, USAGE, "seen", "weights", "entries", *(one.key for one in wanted)]
        assert REBUILD.call_sync(valkey, keys, arguments) == b"set"
    found = counters.read(valkey, [one.key for one in wanted])
    assert [(one.spent // CENT, one.held // CENT) for one in found if one] == [
        (expected(scope), expected(scope)) for scope in SCOPES
    ]


def test_admission_takes_the_budgets_whose_scope_covers_the_request() -> None:
    rows = [(n, "acme", *scope, f"b{n}", 1, "month", True, None, None) for n, scope in enumerate(SCOPES)]
    known = book.BudgetBook(rows)
    for request in REQUESTS:
        above = known.above(tenant="acme", **request._asdict())
        assert [budget.id for budget in above] == [n for n, scope in enumerate(SCOPES) if scope.covers(request)]
