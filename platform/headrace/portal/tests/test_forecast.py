"""Where a budget goes at the pace of the last seven days, and what the overview says of it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from billing.budgets import counters
from billing.budgets.balances import Standing
from billing.drain import drain_all
from billing.models import Budget, UsageRecord
from billing.periods import Window, window_at
from billing.tests.stream import append, connect, usage_event
from headrace.portal.forecast import Forecast, forecast, forecasts
from headrace.portal.rows import rows_of
from headrace.portal.spending import Shown, shown
from headrace.portal.tests.cast import Cast, browser
from tenants.models import Tenant

NOW = datetime(2026, 6, 21, tzinfo=UTC)  # ten days before the month ends


def at_pace(spent: str, a_day: str, *, amount: int = 100, window: Window | None = None) -> Forecast:
    standing = Standing(
        Budget(amount=amount), window or window_at("month", "UTC", NOW), Decimal(amount), Decimal(spent), Decimal(0)
    )
    return forecast(Shown(standing.budget, standing, NOW), Decimal(a_day), NOW)


def test_it_adds_the_pace_for_each_day_that_is_left() -> None:
    fine = at_pace("20", "2.5")
    assert (fine.at_end, fine.is_over, fine.ends) == (Decimal(45), False, None)
    over = at_pace("80", "4")
    assert (over.at_end, over.is_over, over.ends, over.is_soon) == (Decimal(120), True, NOW + timedelta(days=5), False)
    assert at_pace("96", "4").is_soon
    assert at_pace("120", "4").ends is None  # it is used up already
    assert at_pace("20", "0").at_end == 20


def test_it_knows_no_end_where_there_is_none() -> None:
    endless = at_pace("20", "2", window=window_at("total", "UTC", NOW))
    assert (endless.at_end, endless.is_over, endless.ends) == (None, False, NOW + timedelta(days=40))
    assert at_pace("20", "0.001", window=window_at("total", "UTC", NOW)).ends is None


@pytest.fixture
def spent(cast: Cast) -> None:
    """acme, two weeks old: 70 within the last seven days, of project web 14; 500 before; globex 99."""
    now = datetime.now(UTC)
    Tenant.objects.update(created_at=now - timedelta(days=14))
    fields = {"tenant": "acme", "currency": "EUR"}
    Budget.objects.create(tenant=cast.acme.tenant, name="all", amount=100, period="total", thresholds=[])
    Budget.objects.create(tenant=cast.acme.tenant, name="web-only", amount=1000, period="total", project="web")
    Budget.objects.create(tenant=cast.acme.tenant, name="off", amount=5, enabled=False)
    with connect() as client:
        for at, cost, project in ((2, 56, "api"), (3, 14, "web"), (9, 500, "api")):
            event = usage_event(
                now - timedelta(days=at), project=project, cost=str(cost), cost_nano=cost * 10**9, **fields
            )
            append(client, event)
        append(client, usage_event(tenant="globex", currency="USD", cost="99", cost_nano=99 * 10**9))
        drain_all(client)
        counters.rebuild_all(client)
    assert UsageRecord.objects.count() == 4


@pytest.mark.usefixtures("spent")
def test_it_takes_the_pace_from_the_budgets_own_use_of_seven_days(cast: Cast) -> None:
    now = datetime.now(UTC)
    cast.acme.tenant.refresh_from_db()
    with rows_of("acme", who="test", origin="test"):
        budgets = shown(Budget.objects.of("acme").filter(period="total").select_related("tenant").order_by("name"), now)
        found = forecasts(cast.acme.tenant, budgets, now)
    assert [one.a_day for one in found if one] == [Decimal(10), Decimal(2)]
    cast.acme.tenant.created_at = now - timedelta(days=3, hours=12)
    with rows_of("acme", who="test", origin="test"):
        assert [one.a_day for one in forecasts(cast.acme.tenant, budgets, now) if one] == [Decimal(20), Decimal(4)]


@pytest.mark.usefixtures("spent")
def test_it_shows_on_the_overview_the_budgets_in_force_nearest_to_their_end(cast: Cast) -> None:
    page = browser("vic").get("/t/acme/").content.decode()
    places = [page.find(f">{name}</a></h3>") for name in ("all", "web-only", "monthly", "off")]
    assert places[3] == -1
    assert places[:3] == sorted(places[:3])
    assert places[0] > 0
    assert "570.00 EUR" in page  # spent of `all`
    assert "used up" in page
    assert "mean a day of the last 7 days" in page


def test_it_says_where_nothing_bounds_what_is_spent(cast: Cast) -> None:
    Budget.objects.all().delete()
    with connect() as client:
        append(client, usage_event())
        drain_all(client)
    assert "nothing bounds what may be spent" in browser("alice").get("/t/acme/").content.decode()
