"""Every page of the portal in a real browser, out of the table of addresses: a new one that nobody looks at fails."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Browser

from billing.drain import drain_all
from billing.models import Budget, Price, SetBy, UsageRecord
from billing.tests.stream import append, connect, usage_event
from headrace.portal.headers import PORTAL_POLICY
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, draft_of, person
from headrace.portal.tests.test_isolation import PAGES, rule
from headrace.testing.web import WebProcess
from headrace.testing.world import World
from tenants.models import Member, ModelLimits, Role

# What a browser shows no page of: files to keep, and events.
NO_PAGES = {
    "usage-export", "requests-live", "invoices-as", "invoices-current-as", "invoices-records", "audit-export",
    "budgets-refused-export",
}  # fmt: skip
VARIANTS = ("usage/?by=hour&period=today", "usage/?by=label:user", "keys/?show=all", "requests/?status=failed")
ACCOUNT = ("/account/sessions/", "/account/2fa/", "/account/email/", "/account/password/change/", "/?choose")
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\s(style|on\w+)=", re.IGNORECASE)


@pytest.fixture
def addresses(world: World) -> list[str]:
    """Every page that has one, of a tenant in which there is something to see."""
    tenant = world.tenant
    now = datetime.now(UTC)
    with connect() as client:
        event = usage_event(
            now - timedelta(hours=1), tenant=tenant.pk, project="app", key=world.key.pk, model=world.model,
            currency=tenant.currency, labels={"user": "ann"}, price=Price.objects.get(model=world.model).version,
        )  # fmt: skip
        append(client, event)
        drain_all(client)
    known: dict[str, object] = {
        "tenant": tenant.slug,
        "key": world.key.pk,
        "slug": world.project.slug,
        "budget": Budget.objects.create(
            tenant=tenant, name="monthly", amount=100, key=world.key.pk, set_by=SetBy.TENANT
        ).pk,
        "limits": ModelLimits.objects.create(tenant=tenant, key=world.key.pk, model=world.model, concurrency=9).pk,
        "invoice": draft_of(tenant, world.project).pk,
        "position": 1,
        "request_id": UsageRecord.objects.filter(tenant=tenant.pk)[0].pk,
    }
    shown = [page for name, page in PAGES.items() if rule(page).get is not None and name not in NO_PAGES]
    return [
        reverse(f"portal:{page.name}", kwargs={name: known[name] for name in page.pattern.converters}) for page in shown
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_it_has_pages_that_all_can_use(
    browser: Browser, site: WebProcess, world: World, addresses: list[str], width: int, scheme: str
) -> None:
    """By axe; under the strict policy; with nothing on the console; without scrolling sideways."""
    user = person(f"olga{width}")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.OWNER)
    with chromium.tab(browser, site.url, width=width, scheme=scheme) as page:
        page.goto("/account/login/")
        assert chromium.violations(page) == []
        chromium.sign_in(page, user.email, PASSWORD)
        variants = [f"/t/{world.tenant.slug}/{each}" for each in VARIANTS]
        for path in (*addresses, *variants, *ACCOUNT):
            answer = page.goto(path)
            assert answer is not None
            assert answer.headers["content-security-policy"] == PORTAL_POLICY, path
            assert answer.status == 200, path
            assert chromium.violations(page) == [], path
            assert chromium.too_wide(page) == [], path
            assert not INLINE.search(answer.text()), path
