"""`manage.py budgets`: what it lists, counts anew and lets begin anew; and `ledger check` on counters."""

import json
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing.budgets import counters
from billing.ledger_check.budgets import Budgets
from billing.models import Budget, BudgetAdjustment
from billing.tests.stream import append, connect, usage_event
from tenants.models import AuditEntry
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("budgets", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture(autouse=True)
def budgets() -> None:
    """acme's, of which two units are spent: one is on record, one is in the stream."""
    make_tenant(currency="EUR")
    make_tenant("globex")
    Budget.objects.create(tenant_id="acme", name="all", amount=Decimal("10.5"), period="total")
    Budget.objects.create(tenant_id="acme", name="web", amount=5, period="total", project="web", hard=False)
    Budget.objects.create(tenant_id="globex", name="all", amount=1)
    tokens: Any = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 1, "reasoning_tokens": 0}
    events = [
        usage_event(cost="1", cost_nano=10**9, rates=["10000", "0", "0"], price="demo@1", project=project, **tokens)
        for project in ("web", "mobile")
    ]
    with connect() as client:
        append(client, events[0])
        counters.keep(client)
        append(client, events[1])
        counters.rebuild_all(client)


def listed(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("list", "--format", "json", *arguments))
    return found


def test_it_lists_what_is_spent_held_and_left() -> None:
    first, second = listed("--tenant", "acme")
    assert first == {
        "tenant": "acme", "name": "all", "project": None, "key": None, "model": None, "period": "total", "kind": "hard",
        "currency": "EUR", "amount": "10.5", "spent": "2", "held": "0", "left": "8.5", "from": None, "to": None,
    }  # fmt: skip
    assert (second["project"], second["kind"], second["spent"]) == ("web", "soft", "1")
    assert [row.split()[0] for row in run("list").splitlines()] == ["BUDGET", "acme/all", "acme/web", "globex/all"]


def test_it_counts_anew_and_resets() -> None:
    with connect() as client:
        client.delete(*client.keys("hr:b:*"))
    assert [budget["spent"] for budget in listed()] == [None] * 3
    assert run("rebuild", "acme/all", "acme/web") == "2 counters made anew.\n"
    assert [budget["spent"] for budget in listed()] == ["2", "1", None]
    run("reset", "acme/all", "--reason", "goodwill")
    assert [budget["spent"] for budget in listed("--tenant", "acme")] == ["0", "1"]
    assert "nothing was spent" in run("reset", "acme/all", "--reason", "goodwill")
    adjustment = BudgetAdjustment.objects.get()
    assert (int(adjustment.nano), adjustment.reason) == (-2 * 10**9, "goodwill")
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.subject.split()[0], entry.origin) == ("billing_budgetadjustment", "manage.py budgets")


@pytest.mark.parametrize("name", ["acme", "acme/none", "globex/web", "/"])
def test_it_says_that_a_budget_is_not_there(name: str) -> None:
    with pytest.raises(CommandError, match="there is no budget"):
        run("reset", name, "--reason", "x")


def test_the_ledger_check_finds_a_counter_that_is_wrong() -> None:
    with connect() as client:
        append(client, usage_event(cost="1", cost_nano=10**9, rates=["10000", "0", "0"], price="demo@1",
                                   input_tokens=100, cached_input_tokens=0))  # fmt: skip
        outcome = Budgets().run(client)
        assert (outcome.compared >= 3, outcome.total) == (True, 2)
        assert "acme/all from 1970-01-01T00:00Z: 2000000000, not 3000000000" in outcome.differences
        counters.rebuild_all(client)
        outcome = Budgets().run(client)
        assert (outcome.compared >= 3, outcome.total) == (True, 0)
