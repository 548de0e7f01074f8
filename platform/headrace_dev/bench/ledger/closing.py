"""Closing the month of every tenant with the product's own code, and the invoices against the records."""

import time
from decimal import Decimal

import redis
from django.conf import settings
from django.db.models import Sum

from billing.invoicing.closing import close_all
from billing.invoicing.lines import Kind
from billing.ledger_check.invoices import Invoices
from billing.models import Invoice, UsageRecord
from headrace_dev.bench.benchmark import BenchmarkFailed, Say, Target
from headrace_dev.bench.ledger.part import Found, row, spread
from headrace_dev.bench.ledger.seeding.cast import slug

LIMIT_SECONDS = 30


def measure(tenants: int, say: Say) -> Found:
    """Raises BenchmarkFailed where a tenant is not closed, or an invoice does not state what was used."""
    began = time.monotonic()
    closed = close_all()
    seconds = time.monotonic() - began
    if closed.failed or len({draft.tenant_id for draft in closed.drafts}) != tenants:
        raise BenchmarkFailed(f"not every tenant was closed: {closed.failed[:3]}")
    say(f"{len(closed.drafts)} drafts of {tenants} tenants in {seconds:.1f} s")
    _check_all()
    checked = sum(_check(name) for name in spread([slug(number) for number in range(tenants)], max(1, tenants // 50)))
    return Found(
        [
            row("closing", count=len(closed.drafts), seconds=seconds),
            row("records behind checked drafts", count=checked),
        ],
        [Target(f"seconds, {tenants} tenants closed", seconds, LIMIT_SECONDS)],
        ["closing: every draft's lines and totals were checked, and the sums of a sample against its records."],
    )


def _check_all() -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        outcome = Invoices().run(client)
    if outcome.total:
        raise BenchmarkFailed(f"{outcome.total} drafts do not add up: {outcome.differences[:3]}")


def _check(tenant: str) -> int:
    """Whether the tenant's drafts state exactly what their records cost; how many records."""
    count = 0
    for draft in Invoice.objects.of(tenant):
        rows = UsageRecord.rows.of(tenant).filter(
            admitted_at__gte=draft.period_start, admitted_at__lt=draft.period_end, currency=draft.currency
        )
        cost = rows.aggregate(cost=Sum("cost", default=Decimal(0)))["cost"]
        stated = draft.lines.filter(kind=Kind.USAGE).aggregate(exact=Sum("exact", default=Decimal(0)))["exact"]
        if stated != cost:
            raise BenchmarkFailed(f"{draft} states {stated} {draft.currency}, its records cost {cost}")
        count += rows.count()
    return count
