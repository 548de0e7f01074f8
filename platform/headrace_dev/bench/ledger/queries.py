"""What is asked of the ledger's sums: the cost report, the portal's figures, and `manage.py usage`."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from django.utils import timezone

from billing.cost.report import report
from billing.cost.report_query import UNITS, UTC_ZONE, Asked, default_span
from billing.exports import usage_rows
from billing.periods import calendar_of
from headrace.portal import figures
from headrace.portal.period import Period, period
from headrace.portal.rollups import DIMENSIONS, rollups
from headrace.portal.rows import rows_of
from headrace.portal.views.overview import RECENT
from headrace_core.time_zones import zone_named
from headrace_dev.bench.benchmark import Say, Target
from headrace_dev.bench.figures import percentile
from headrace_dev.bench.ledger.part import Found, milliseconds, row, spread
from headrace_dev.bench.ledger.seeding.cast import slug
from headrace_dev.bench.ledger.seeding.offers import MODELS, POOLS
from tenants.models import Tenant

LIMIT_MS = 100
MOST_TENANTS = 100
LINES = 1000  # what `manage.py usage` prints unless told otherwise
Question = Callable[[], object]


def measure(tenants: int, say: Say) -> Found:
    """Each question of as many tenants, the largest among them, as the portal asks it: under row-level security."""
    found = Found()
    asked = {f"cost by {by}": list(_costs(by)) for by in UNITS}
    names = spread([slug(number) for number in range(tenants)], MOST_TENANTS)
    rows = list(Tenant.objects.filter(slug__in=names))
    for name, question in _QUESTIONS.items():
        asked[name] = [partial(_in_portal, tenant, question) for tenant in rows]
    asked["usage command"] = [partial(_list, tenant) for tenant in rows]
    for name, questions in asked.items():
        questions[0]()  # a connection, and what Django makes of a query the first time
        times = milliseconds(questions)
        found.rows.append(row(name, count=len(times), times=times))
        found.targets.append(Target(f"p95 ms, {name}", percentile(times, 95), LIMIT_MS))
        say(f"{name}: p95 {percentile(times, 95):.0f} ms, at most {max(times):.0f} ms")
    return found


def _costs(by: str) -> Iterator[Question]:
    now = datetime.now(UTC)
    start, end = default_span(by, now, UTC_ZONE)
    for pool in (None, *POOLS):
        for model in (None, *MODELS):
            yield partial(report, Asked(start, end, by, pool=pool, model=model), now=now)


def _in_portal(tenant: Tenant, question: "Callable[[Tenant, Period], object]") -> object:
    now = timezone.now()
    with rows_of(tenant.pk, who="bench", origin=""), timezone.override(zone_named(tenant.time_zone)):
        return question(tenant, period("30d", calendar_of(tenant.pk), now))


def _total(tenant: Tenant, span: Period) -> object:
    return figures.total(rollups(tenant, span.start, span.end))


def _grouped(by: str) -> "Callable[[Tenant, Period], object]":
    def question(tenant: Tenant, span: Period) -> object:
        return figures.grouped(rollups(tenant, span.start, span.end), by)

    return question


def _course(tenant: Tenant, span: Period) -> object:
    return figures.course(rollups(tenant, span.start, span.end))


def _values(tenant: Tenant, span: Period) -> object:
    return figures.values(rollups(tenant, span.start, span.end))


def _latency(tenant: Tenant, span: Period) -> object:
    return figures.latency(tenant, max(span.start, timezone.now() - RECENT))


def _list(tenant: Tenant) -> object:
    return sum(1 for _ in usage_rows(tenant, most=LINES))


_QUESTIONS = {
    "usage, 30 days": _total,
    **{f"usage by {by}, 30 days": _grouped(by) for by in DIMENSIONS},
    "usage by day, 30 days": _course,
    "usage, what there is to choose": _values,
    "latencies": _latency,
}
