"""The tenant's budgets, as they stand."""

from decimal import Decimal

from billing.models import Budget
from headrace.portal.tests.cast import Cast, browser


def test_it_shows_each_budget_of_ones_own_and_no_spending_that_is_not_counted_yet(cast: Cast) -> None:
    assert "No budget yet" in browser("vic").get("/t/acme/budgets/").content.decode()
    Budget.objects.create(tenant=cast.acme.tenant, name="monthly", amount=Decimal(2500))
    Budget.objects.create(tenant=cast.globex.tenant, name="secret-plan", amount=Decimal(7))
    page = browser("fay").get("/t/acme/budgets/").content.decode()
    assert "monthly" in page
    assert "2,500.0000" in page
    assert "secret-plan" not in page
    assert "being counted anew" in page
