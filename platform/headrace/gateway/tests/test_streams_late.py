"""A stream across the end of a month whose last word comes after that month was invoiced."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import redis
from django.db import connection

from billing.budgets import counters as budgets
from billing.invoicing.closing import close_tenant
from billing.invoicing.errors import CannotFinalise
from billing.invoicing.tests.making import LONG_AGO, finalise, make_seller, stated
from billing.ledger_check.registry import CHECKS
from billing.models import BillingAccount, UsageCorrection, UsageRecord
from billing.partitions import month_of
from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.conftest import QUICK
from headrace_dev.testing.budgets import add_budget, counter, on_record
from headrace_dev.testing.clock import Clock
from headrace_dev.testing.invariants import eventually, progress, reaped
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import at_rest, drained
from tenants.models import Tenant

ZONE = "Asia/Kolkata"
MOMENT = timedelta(seconds=30)


@pytest.fixture
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture
def place(clock: Clock, engine: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    web = WebProcess(tmp_path_factory.mktemp("web") / "web.log", **clock.environment, **QUICK)
    try:
        yield Place(web.wait_ready(), engine)
    finally:
        web.stop()


def test_it_is_an_adjustment_on_the_next_invoice(place: Place, clock: Clock, valkey: "redis.Redis") -> None:
    """Its process stands still while a reaper settles it; what it says when it goes on is more than that."""
    world, slug = place.world, place.world.tenant.pk
    Tenant.objects.filter(pk=slug).update(time_zone=ZONE)
    BillingAccount.objects.create(tenant=world.tenant, legal_entity=make_seller(), since=LONG_AGO)
    budget = add_budget(world, 1000, period="total")
    price = world.price("1", "1", "1", effective_from=LONG_AGO)
    here = datetime.now(ZoneInfo(ZONE))  # its month begins before UTC's
    began = datetime(here.year, here.month, 1, tzinfo=ZoneInfo(ZONE)).astimezone(UTC)
    month = f"{began - MOMENT:%Y-%m}"
    with connection.cursor() as cursor:
        for moment in (began - MOMENT, began + MOMENT, began + timedelta(days=10)):
            cursor.execute("SELECT headrace_usage_partition(%s)", [month_of(moment)])
    clock.set(began - MOMENT)
    budgets.keep(valkey)
    assert place.chat().status == 200
    at_rest(valkey)

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(place.chat, prompt(tokens=100, interval_ms=50), stream=True, max_tokens=200)
        eventually(lambda: sum(progress(valkey).values()))
        clock.set(began + MOMENT)
        drained(valkey)
        [draft] = close_tenant(slug, now=clock.now())
        with pytest.raises(CannotFinalise, match="1 requests of the period still run"):
            finalise(draft, now=clock.now())
        place.web.send(signal.SIGSTOP)
        reaped(valkey, 1)
        drained(valkey)
        invoice = finalise(draft, now=clock.now())
        place.web.send(signal.SIGCONT)
        assert running.result().error["code"] == "lease_lost"
    at_rest(valkey)
    drained(valkey)

    records = list(UsageRecord.objects.filter(tenant=slug))
    [correction] = UsageCorrection.objects.filter(tenant=slug)
    assert [line[0:2] + line[5:7] for line in stated(invoice)] == [
        ("usage", month, price.version, sum(record.input_tokens for record in records)),
        ("usage", month, price.version, sum(record.output_tokens for record in records)),
    ]
    assert correction.admitted_at < began < correction.finished_at
    assert correction.output_tokens > 0
    [following] = close_tenant(slug, now=began + timedelta(days=40))
    assert (following.period_start, [line[0:2] + line[5:7] for line in stated(following)]) == (
        began, [("adjustment", month, price.version, correction.output_tokens)],
    )  # fmt: skip

    found = counter(valkey, budget)
    assert (found.held, found.spent) == (0, on_record(budget))
    assert found.spent == sum(row.cost_nano or 0 for row in (*records, correction))
    assert {name: check.run(valkey).differences for name, check in CHECKS.items()} == {name: [] for name in CHECKS}
