"""Money in a real browser: a budget that refuses and is told of, and an invoice that says the same in every form."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import redis
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from billing.amounts import plain
from billing.budgets import alerts, counters
from billing.invoicing.tests.making import close, finalise, make_seller, use
from billing.models import BillingAccount, Budget, BudgetAlert, Invoice, Price
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.budgets import kept
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, drained, records
from tenants.models import Member, Role


def call(site: WebProcess, world: World) -> httpx.Response:
    body = world.body("Hello", max_tokens=5)
    return httpx.post(f"{site.url}/v1/chat/completions", json=body, headers=world.headers(), trust_env=False)


def test_it_shows_a_budget_that_refuses_and_who_was_told(
    browser: Browser, site: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    user = person("rosa")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.FINANCE)
    with kept(), chromium.tab(browser, site.url) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.get_by_role("link", name="Budgets", exact=True).click()
        page.get_by_role("link", name="Create a budget").first.click()
        page.get_by_label("Name").fill("tight")
        page.get_by_label("Amount").fill("1")
        page.get_by_role("button", name="Create the budget").click()
        expect(page.get_by_role("heading", name="tight")).to_be_visible()
        answered = asked_until(site, world, lambda status: status != 503)
        assert answered.status_code == 200, answered.text
        drained(valkey)
        cost = records(world)[-1].cost
        assert cost is not None
        page.get_by_role("link", name="Change").click()
        page.get_by_label("Amount").fill(plain(cost))
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("tight is saved")).to_be_visible()
        refused = asked_until(site, world, lambda status: status != 200)
        assert (refused.status_code, refused.json()["error"]["code"]) == (402, "budget_exhausted")
        assert "tight" in refused.json()["error"]["message"]
        drained(valkey)
        counters.rebuild_all(valkey, Budget.objects.filter(tenant=world.tenant))
        alerts.find_alerts(valkey)
        assert BudgetAlert.objects.filter(tenant=world.tenant).count() == 2
        page.reload()
        expect(page.get_by_text("used up", exact=True)).to_be_visible()
        expect(page.get_by_text("budget_exhausted")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="100 %")).to_be_visible()
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_text("used up", exact=True)).to_be_visible()
        page.get_by_role("link", name="Budgets", exact=True).click()
        page.get_by_role("link", name="Alerts").click()
        expect(page.get_by_role("row").filter(has_text="80 %")).to_be_visible()
        assert chromium.violations(page) == []


def asked_until(site: WebProcess, world: World, is_so: Callable[[int], bool]) -> httpx.Response:
    """Ask again until the status is so: a budget's counter is made, and a change of it obeyed, within a second."""
    answers: list[httpx.Response] = []

    def ask() -> bool:
        answers.append(call(site, world))
        return is_so(answers[-1].status_code)

    eventually(ask, 20, lambda: answers[-1].text)
    return answers[-1]


@pytest.fixture
def invoice(world: World) -> Invoice:
    """April 2026 of the world's tenant: amounts that round."""
    BillingAccount.objects.create(
        tenant=world.tenant, legal_entity=make_seller("west"), tax_rate=19, since=datetime(2020, 1, 1, tzinfo=UTC)
    )
    price = Price.objects.filter(model=world.model).latest("effective_from")
    for day, tokens in ((1, (1_234_567, 400_001, 50_003)), (15, (7, 3, 1)), (30, (1_000_000, 0, 999_999))):
        use(
            f"2026-04-{day:02}T08:00", price, tokens=tokens, key=world.key.pk, project="app", tenant=world.tenant.pk,
            currency=world.tenant.currency,
        )  # fmt: skip
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    [draft] = [one for one in close(now) if one.tenant_id == world.tenant.pk]
    return finalise(draft, now)


def taken_away(page: Page, name: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("link", name=name, exact=True).click()
    return Path(download.value.path()).read_bytes()


def test_it_gives_an_invoice_as_files_whose_totals_are_the_pages(
    browser: Browser, site: WebProcess, world: World, invoice: Invoice
) -> None:
    user = person("fiona")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.FINANCE)
    with chromium.tab(browser, site.url) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.get_by_role("link", name="Invoices").click()
        page.get_by_role("link", name=str(invoice.number)).click()
        total = page.get_by_role("row", name="Total").get_by_role("cell").nth(1).inner_text()
        lines = [cell.inner_text() for cell in page.locator("td[title^=Exactly]").all()]
        amounts = [Decimal(text.split()[0].replace(",", "")) for text in lines]
        assert f"{sum(amounts):,.2f} USD" == total == f"{invoice.total:,.2f} USD"
        rows = list(csv.DictReader(io.StringIO(taken_away(page, "CSV").decode())))
        assert [Decimal(row["amount"]) for row in rows] == amounts
        pdf = "\n".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(taken_away(page, "PDF"))).pages)
        assert total.split()[0] in pdf
        for amount in amounts:
            assert f"{amount:,.2f}" in pdf
        assert str(invoice.number) in pdf
