"""Usage by label: exact of the requests that were looked through, and never without saying how far that went."""

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client

from billing.drain import drain_all
from billing.late_pricing import price_unpriced
from billing.models import Price
from billing.tests.stream import append, connect, usage_event
from headrace.portal import figures, labelled, log
from headrace.portal.rows import rows_of
from headrace.portal.tests.cast import Cast, browser
from tenants.models import Tenant

NOW = datetime.now(UTC) - timedelta(seconds=5)
ONE = Decimal(1)


@pytest.fixture(scope="module")
def world(shared: Cast) -> Cast:
    """acme: ann twice (once corrected; and once copied to a shadow), ben once without a price, one request without a
    user. globex: ann."""
    first = usage_event(NOW, labels={"user": "ann", "metadata.team": "a"}, cost="0.5", cost_nano=500_000_000)
    late = first | {"part": 1, "cost": "0.25", "cost_nano": 250_000_000, "cached_input_tokens": 0}
    events = [
        first,
        late | {"reasoning_tokens": 0},
        usage_event(NOW - timedelta(minutes=1), model="other", labels={"user": "ann"}, cost="1", cost_nano=10**9),
        usage_event(NOW - timedelta(minutes=2), labels={"user": "ben"}, cost=None, cost_nano=None, price=None),
        usage_event(NOW - timedelta(minutes=3), labels={"error": "x"}, status="error", cost="0", cost_nano=0),
        usage_event(
            NOW - timedelta(minutes=4), kind="shadow", labels={"user": "ann"}, cost="0", cost_nano=0, price=None
        ),
        usage_event(tenant="globex", currency="USD", labels={"user": "ann", "secret-label": "y"}),
    ]
    with connect() as client:
        append(client, *events)
        drain_all(client)
    return shared


@pytest.fixture
def alice(world: Cast) -> Client:
    return browser("alice")


def table(client: Client, query: str) -> list[tuple[str, str, str]]:
    text = client.get(f"/t/acme/usage/export.csv?period=7d&{query}").content.decode("utf-8-sig")
    by = text.partition(",")[0]
    return [(line[by], line["requests"], line["cost"]) for line in csv.DictReader(io.StringIO(text))]


def summed(client: Client, query: str) -> tuple[int, Decimal]:
    """Requests and cost of all lines."""
    lines = table(client, query)
    return sum(int(requests) for _, requests, _ in lines), sum((Decimal(cost or 0) for *_, cost in lines), Decimal(0))


def test_no_page_counts_a_copy_that_nobody_asked_for(alice: Client, world: Cast) -> None:
    assert summed(alice, "by=model")[0] == summed(alice, "by=label:user")[0] == 4
    with rows_of("acme", who="test", origin=""):
        tenant = Tenant.objects.get(slug="acme")
        assert {record.kind for record in log.page(tenant, {}, None).records} == {"chat"}
        assert {record.kind for record in log.recent(tenant, {}, NOW - timedelta(days=1))} == {"chat"}
        assert figures.latency(tenant, NOW - timedelta(days=1)).requests == 4


def test_it_groups_by_a_label_with_corrections_and_what_has_none(alice: Client) -> None:
    assert table(alice, "by=label:user") == [
        ("ann", "2", "1.750000000000"),
        ("", "1", "0.000000000000"),
        ("ben", "1", ""),
    ]
    page = alice.get("/t/acme/usage/?period=7d&by=label:user").content.decode()
    assert ">without it</th>" in page
    assert "all of them" in page


def test_it_narrows_to_a_label_and_to_a_value_of_it(alice: Client, world: Cast) -> None:
    assert [line[:2] for line in table(alice, "by=model&label=user&value=ann")] == [
        ("other", "1"), ("demo", "1"),
    ]  # fmt: skip
    assert sum(int(line[1]) for line in table(alice, "by=model&label=user")) == 3
    assert [line[1] for line in table(alice, "by=label:user&model=other")] == ["1"]
    assert table(alice, "by=label:user&key=none") == []
    assert [line[1] for line in table(alice, "by=day&label=user")] == ["3"]
    assert [line[1] for line in table(alice, "by=hour&label=metadata.team")] == ["1"]


def test_it_says_the_same_as_the_sums_of_hours_where_both_speak(alice: Client) -> None:
    of_hours = dict((name, rest) for name, *rest in table(alice, "by=model"))
    of_records = dict((name, rest) for name, *rest in table(alice, "by=model&label=user"))
    assert Decimal(of_hours["other"][1]) == Decimal(of_records["other"][1])
    assert summed(alice, "by=label:none") == summed(alice, "by=project")


def test_it_offers_the_labels_there_are_and_nothing_of_others(alice: Client) -> None:
    page = alice.get("/t/acme/usage/?period=7d").content.decode()
    for name in ("user", "metadata.team", "error"):
        assert f'value="label:{name}"' in page
    assert "secret-label" not in page
    assert (
        "secret-label" not in alice.get("/t/acme/usage/?by=label:secret-label").content.decode().partition("<main")[0]
    )
    assert table(alice, "by=label:secret-label")[0][0] == ""


def test_it_looks_through_so_many_and_says_so(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MOST", 3)
    assert [line[:2] for line in table(alice, "by=label:user")] == [("ann", "2")]
    page = alice.get("/t/acme/usage/?period=7d&by=label:user").content.decode()
    assert "Out of the newest 3 requests of this period alone" in page


def test_it_counts_a_price_that_came_late_once(alice: Client) -> None:
    Price.objects.create(
        model="demo", currency="EUR", input=ONE, cached_input=ONE, output=ONE, effective_from=NOW - timedelta(days=400)
    )
    with connect() as client:
        price_unpriced(client)
        drain_all(client)
    by_user = {name: rest for name, *rest in table(alice, "by=label:user")}
    assert by_user["ben"][0] == "1"
    assert Decimal(by_user["ben"][1]) > 0
    assert summed(alice, "by=label:none") == summed(alice, "by=model")


@pytest.mark.parametrize("odd", ["by=label:", "by=label:%00", "label=' OR 1", "label=user&value=%25s", "by=label:%25s"])
def test_it_takes_any_address(alice: Client, odd: str) -> None:
    assert alice.get(f"/t/acme/usage/?{odd}").status_code == 200
