"""Budgets in the portal: made and changed by those who may, obeyed at once, shown as they stand."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from billing.budgets import alerts, counters
from billing.budgets.book import SELECT, BudgetBook
from billing.drain import drain_all
from billing.models import Budget, BudgetAdjustment, BudgetAlert
from billing.tests.stream import append, connect, usage_event
from headrace.models import ConfigChange
from headrace.portal.tests.cast import Cast, browser
from tenants.models import AuditEntry
from tenants.tenants import suspend_tenant


def form(**changes: object) -> dict[str, object]:
    said = {"name": "research", "period": "month", "amount": "250", "hard": "hard", "thresholds": "100, 50,50"}
    return said | {"project": "", "key": "", "model": "", "extra": "", "extra_until": ""} | changes


def spend(nano: int, **fields: str) -> None:
    """Settle one request of acme, and count it."""
    cost = f"{Decimal(nano).scaleb(-9):f}"
    with connect() as client:
        counters.keep(client)
        append(client, usage_event(None, cost_nano=nano, cost=cost, **fields))
        drain_all(client)
        counters.rebuild_all(client)


def limit_of(name: str) -> Decimal:
    """What the data plane would allow now, read as it reads."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT, {"ids": None})
        book = BudgetBook(cursor.fetchall())
    found = book.above(tenant="acme", project="web", key="ABCDEFGHIJKL", model="demo")
    at = int(timezone.now().timestamp() * 1000)
    [meter] = [each for each in book.meters(found, at_ms=at) if each.scope == name]
    return Decimal(meter.limit).scaleb(-9)


def test_it_makes_a_budget_that_is_obeyed(cast: Cast) -> None:
    answer = browser("fay").post("/t/acme/budgets/new/", form(project="web", model="demo"))
    budget = Budget.objects.get(name="research")
    assert answer.headers["Location"] == f"/t/acme/budgets/{budget.pk}/"
    assert (budget.tenant_id, budget.project, budget.key, budget.model) == ("acme", "web", "", "demo")
    assert (budget.hard, budget.thresholds, budget.amount, budget.enabled) == (True, [50, 100], Decimal(250), True)
    assert limit_of("research") == 250
    entry = AuditEntry.objects.filter(subject__contains="research").latest("id")
    assert (entry.who, entry.origin, entry.action) == ("fay@example.com", "192.0.2.7", "created")


def test_it_obeys_a_change_and_only_what_may_change(cast: Cast) -> None:
    ada = browser("ada")
    ada.post("/t/acme/budgets/new/", form())
    budget = Budget.objects.get(name="research")
    before = ConfigChange.objects.latest("id").pk
    until = (timezone.now() + timedelta(days=2)).astimezone().strftime("%Y-%m-%dT%H:%M")
    changes = form(amount="10.5", hard="soft", extra="4.5", extra_until=until, name="other", period="day", enabled="on")
    assert ada.post(f"/t/acme/budgets/{budget.pk}/change/", changes).status_code == 302
    budget.refresh_from_db()
    assert (budget.name, budget.period, budget.hard, budget.amount) == ("research", "month", False, Decimal("10.5"))
    assert limit_of("research") == 15
    assert ConfigChange.objects.filter(pk__gt=before, table_name="billing_budget").exists()
    page = ada.get(f"/t/acme/budgets/{budget.pk}/change/").content.decode()
    assert 'value="10.5"' in page
    assert ada.post(f"/t/acme/budgets/{budget.pk}/change/", form(amount="10.5")).status_code == 302
    budget.refresh_from_db()
    assert (budget.enabled, budget.extra) == (False, None)  # the box was not ticked, the increase left out


WRONG: list[dict[str, object]] = [
    {"name": "Two words"},
    {"name": "monthly"},
    {"amount": "0"},
    {"amount": "-1"},
    {"amount": "NaN"},
    {"amount": "1e30"},
    {"amount": ""},
    {"period": "year"},
    {"hard": "perhaps"},
    {"thresholds": "0"},
    {"thresholds": "80,x"},
    {"thresholds": ",".join(map(str, range(1, 12)))},
    {"extra": "5"},
    {"extra_until": "2099-01-01T00:00"},
    {"extra": "5", "extra_until": "2001-01-01T00:00"},
    {"project": "nothing"},
    {"model": "nothing"},
    {"key": "nothing"},
]


def test_it_refuses_what_a_budget_cannot_be(cast: Cast) -> None:
    alice = browser("alice")
    for wrong in WRONG:
        answer = alice.post("/t/acme/budgets/new/", form(**wrong))
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True), wrong
    assert "An amount is more than 0." in alice.post("/t/acme/budgets/new/", form(amount="0")).content.decode()
    assert not Budget.objects.filter(name="research").exists()


def test_it_finds_a_key_by_its_name_and_none_of_another_team(cast: Cast) -> None:
    alice = browser("alice")
    alice.post("/t/acme/budgets/new/", form(name="one", key="acme-key", project="web"))
    budget = Budget.objects.get(name="one")
    assert (budget.key, budget.project) == (cast.acme.key.pk, "")
    for text in ("globex-key", cast.globex.key.pk):
        assert "no such key" in alice.post("/t/acme/budgets/new/", form(name="two", key=text)).content.decode()
    fay = browser("fay")  # sees no keys
    assert "acme-key" not in fay.get("/t/acme/budgets/new/").content.decode()
    page = fay.get(f"/t/acme/budgets/{budget.pk}/").content.decode()
    assert "one API key" in page
    assert cast.acme.key.pk not in page


def test_it_shows_how_a_budget_stands_who_used_it_and_who_was_told(cast: Cast) -> None:
    cast.acme.budget.delete()
    Budget.objects.create(tenant=cast.acme.tenant, name="all", amount=100, thresholds=[50, 90])
    spend(60_250_000_000, project="web", key=cast.acme.key.pk)
    spend(5_000_000_000, project="elsewhere", model="large")
    with connect() as client:
        alerts.find_alerts(client)
    page = browser("alice").get("/t/acme/budgets/").content.decode()
    assert "65.25 EUR" in page
    assert "34.75 EUR" in page
    assert "past a threshold" in page
    assert "Europe/Berlin" in page
    one = browser("alice").get(f"/t/acme/budgets/{Budget.objects.get(name='all').pk}/").content.decode()
    assert "web/<wbr>acme-key" in one
    assert "60.25 EUR" in one
    assert re.search(r"large</th><td class=\"n\">1</td><td class=\"n\">5.00 EUR", one)
    assert BudgetAlert.objects.count() == 1
    assert "50&nbsp;%" in browser("vic").get("/t/acme/budgets/alerts/").content.decode()


def test_it_says_so_where_nothing_is_known(cast: Cast, settings: object) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    page = browser("alice").get("/t/acme/budgets/")
    assert (page.status_code, "being counted" in page.content.decode()) == (200, True)


def test_it_begins_a_budget_anew_for_nobody_but_the_operators(cast: Cast) -> None:
    budget = cast.acme.budget
    alice = browser("alice")
    for path in (f"/t/acme/budgets/{budget.pk}/reset/", f"/t/acme/budgets/{budget.pk}/"):
        assert alice.post(path).status_code in {404, 405}
    assert not BudgetAdjustment.objects.exists()
    BudgetAdjustment.objects.create(
        tenant=cast.acme.tenant,
        budget=budget,
        window_start=datetime.now(UTC).replace(year=2020),
        nano=1,
        reason="of old",
        who="o",
    )
    assert "of old" not in alice.get(f"/t/acme/budgets/{budget.pk}/").content.decode()


def test_it_closes_budgets_and_invoices_of_a_suspended_team_and_changes_nothing(cast: Cast) -> None:
    suspend_tenant(tenant=cast.acme.tenant)
    alice = browser("alice")
    for path in ("budgets/", "budgets/limits/", "budgets/webhooks/", "invoices/", f"invoices/{cast.acme.invoice.pk}/"):
        assert alice.get(f"/t/acme/{path}").status_code == 403, path
    assert alice.post("/t/acme/budgets/new/", form()).status_code == 403
    assert not Budget.objects.filter(name="research").exists()
    assert browser("opal").get("/t/acme/budgets/").status_code == 200  # the operators look on


def test_it_asks_the_database_as_often_however_many_there_are(cast: Cast) -> None:
    alice = browser("alice")

    def questions(path: str) -> int:
        with CaptureQueriesContext(connections["app"]) as queries:
            assert alice.get(path).status_code == 200
        return len(queries)

    few = {path: questions(f"/t/acme/budgets/{path}") for path in ("", "alerts/", "new/", f"{cast.acme.budget.pk}/")}
    for number in range(8):
        scope = {"key": cast.acme.key.pk, "model": f"m{number}"}
        budget = Budget.objects.create(tenant=cast.acme.tenant, name=f"b{number}", amount=1, **scope)
        window = datetime(2026, 1, 1, tzinfo=UTC)
        BudgetAlert.objects.create(
            tenant=cast.acme.tenant, budget=budget, window_start=window, threshold=80, spent=1, amount=1
        )
    for path, before in few.items():
        assert questions(f"/t/acme/budgets/{path}") <= before + 2 <= 16, path
