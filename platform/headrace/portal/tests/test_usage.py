"""Usage and requests as pages and CSV show them: the ledger's own figures, in the tenant's own days."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from billing.drain import drain_all
from billing.models import UsageRecord
from billing.partitions import ensure_months
from billing.periods import always_in
from billing.tests.stream import append, connect, usage_event
from headrace.portal import figures, log
from headrace.portal.period import period
from headrace.portal.rollups import rollups
from headrace.portal.rows import rows_of
from headrace.portal.tests.cast import Cast, browser

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def world(shared: Cast) -> Cast:
    """acme: three requests of two models within the hour, one of them unpriced; one 40 days ago. globex: one."""
    ensure_months(NOW - timedelta(days=40))  # early in a month that is two months ago
    events = [
        usage_event(NOW, key=shared.acme.key.pk, cost="0.500000000001", cost_nano=500_000_001),
        usage_event(NOW, model="other", status="error", finish_reason=None, cost="0.25", cost_nano=250_000_000),
        usage_event(NOW, model="other", cost=None, cost_nano=None, price=None),
        usage_event(NOW - timedelta(days=40), cost="7", cost_nano=7_000_000_000),
        usage_event(NOW, tenant="globex", currency="USD", cost="99", cost_nano=99_000_000_000),
    ]
    with connect() as client:
        append(client, *events)
        drain_all(client)
    return shared


@pytest.fixture
def alice(world: Cast) -> Client:
    return browser("alice")


def table(client: Client, query: str) -> list[dict[str, str]]:
    answer = client.get(f"/t/acme/usage/export.csv?{query}")
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_it_exports_what_it_shows_to_the_last_digit(alice: Client) -> None:
    lines = table(alice, "period=7d&by=model")
    assert [(line["model"], line["requests"], line["failed"], line["unpriced"], line["cost"]) for line in lines] == [
        ("demo", "1", "0", "0", "0.500000000001"),
        ("other", "2", "1", "1", "0.250000000000"),
    ]
    assert {line["currency"] for line in lines} == {"EUR"}
    assert [line["uncached_input_tokens"] for line in lines] == ["60", "120"]
    page = alice.get("/t/acme/usage/?period=7d&by=model").content.decode()
    assert "0.7500" in page
    assert "+ 1 unpriced" in page
    assert "period=7d&amp;by=model" in page  # the link to the CSV says what the page says


def test_it_says_the_same_sum_on_every_page_of_a_period(alice: Client) -> None:
    for period_, requests, sum_ in (("today", "3", "0.750000 EUR"), ("7d", "3", "0.750000 EUR")):
        days = table(alice, f"period={period_}&by=day")
        assert sum(int(day["requests"]) for day in days) == int(requests)
        assert sum(Decimal(day["cost"]) for day in days) == Decimal("0.750000000001")
        overview = alice.get(f"/t/acme/?period={period_}").content.decode()
        assert f'<div class="value">{sum_}</div>' in overview
        assert "1 request had no price in force and is not in the cost" in overview
        assert ">0.750000 " in alice.get(f"/t/acme/usage/?period={period_}").content.decode()


def test_it_filters_and_groups(alice: Client, world: Cast) -> None:
    key = world.acme.key.pk
    assert [line["model"] for line in table(alice, f"by=model&key={key}")] == ["demo"]
    by_key = table(alice, "by=key")
    assert {(line["key"], line["key_name"]) for line in by_key} >= {(key, "web/acme-key"), ("ABCDEFGHIJKL", "")}
    assert all(date.fromisoformat(line["day"]) for line in table(alice, "by=day&period=7d"))
    assert table(alice, "by=hour&model=none") == []
    assert table(alice, "by=nonsense&period=nonsense")[0]["model"] == "demo"


def test_it_shows_an_unpriced_model_as_such_and_never_as_nothing(alice: Client, world: Cast) -> None:
    with rows_of("acme", who="test", origin="test"):
        rows = rollups(world.acme.tenant, NOW - timedelta(days=1), NOW, model="other")
        assert figures.total(rows).amount == Decimal("0.25")
    assert figures.Figures("m", requests=2, unpriced=2).amount is None
    assert figures.Figures("m").amount == 0


@pytest.mark.parametrize("path", ["", "usage/", "requests/"])
def test_it_shows_nothing_of_others(alice: Client, path: str) -> None:
    page = alice.get(f"/t/acme/{path}").content.decode()
    assert "99.00" not in page
    assert "globex" not in page


def test_it_counts_days_from_the_tenants_own_midnight() -> None:
    evening = datetime(2026, 7, 1, 0, 30, tzinfo=UTC)  # in New York 20:30 of the day before
    today = period("today", always_in("America/New_York"), evening)
    assert today.start == datetime(2026, 6, 30, 4, tzinfo=UTC)
    assert (today.end, today.before) == (evening, datetime(2026, 6, 29, 4, tzinfo=UTC))
    month = period("last-month", always_in("Asia/Kolkata"), evening)
    assert month.start == datetime(2026, 5, 31, 18, 30, tzinfo=UTC)
    assert month.end == datetime(2026, 6, 30, 18, 30, tzinfo=UTC)


def test_it_lists_requests_newest_first_and_one_with_its_arithmetic(alice: Client) -> None:
    record = UsageRecord.objects.filter(tenant="acme", model="demo")[0]
    listed = alice.get("/t/acme/requests/").content.decode()
    assert listed.count("data-id=") == 4
    assert str(record.pk) in listed
    for query, count in (("status=failed", 1), ("model=other", 2), ("project=none", 0), ("status=ok&model=other", 1)):
        assert alice.get(f"/t/acme/requests/?{query}").content.decode().count("data-id=") == count, query
    page = alice.get(f"/t/acme/requests/{record.pk}/").content.decode()
    assert "0.500000000001 EUR" in page
    assert "acme-key" in page
    theirs = UsageRecord.objects.get(tenant="globex")
    assert alice.get(f"/t/acme/requests/{theirs.pk}/").status_code == 404


def test_it_pages_by_the_index_and_looks_through_no_more_than_a_window(
    world: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PAGE", 2)
    acme = world.acme.tenant
    with rows_of("acme", who="test", origin="test"):
        first = log.page(acme, {}, None)
        assert len(first.records) == 2
        assert first.older
        second = log.page(acme, {}, log.Place.read(str(first.older)))
        assert second.older is None
        seen = [record.pk for record in (*first.records, *second.records)]
        assert len(set(seen)) == 4
        monkeypatch.setattr(log, "WINDOW", 1)
        partial = log.page(acme, {"model": "none"}, None)
        assert partial.is_partial
        assert partial.older
    assert log.Place.read("nonsense") is log.Place.read("") is None


@pytest.mark.parametrize(
    "odd", ["before=x", "before=ffffffff-ffff-7fff-8fff-ffffffffffff", "model=%00", "key=" + "a" * 999]
)
def test_it_takes_any_address(alice: Client, odd: str) -> None:
    assert alice.get(f"/t/acme/requests/?{odd}").status_code == 200
