"""Every page of the portal in a real browser, out of the table of addresses: a new one that nobody looks at fails."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page

from billing.drain import drain_all
from billing.models import Budget, Price, SetBy, UsageRecord
from billing.tests.stream import append, connect, usage_event
from headrace.portal.headers import PORTAL_POLICY
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, draft_of, person
from headrace.portal.tests.test_isolation import PAGES, rule
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import Member, ModelLimits, Role

# What a browser shows no page of: files to keep, and events.
NO_PAGES = {
    "usage-export", "requests-live", "invoices-as", "invoices-current-as", "invoices-records", "audit-export",
    "budgets-refused-export",
}  # fmt: skip
VARIANTS = ("usage/?by=hour&period=today", "usage/?by=label:user", "keys/?show=all", "requests/?status=failed")
ACCOUNT = ("/account/sessions/", "/account/2fa/", "/account/email/", "/account/password/change/", "/?choose")
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\s(style|on\w+)=", re.IGNORECASE)
SHOWN = [name for name, page in PAGES.items() if rule(page).get is not None and name not in NO_PAGES]


@pytest.fixture(scope="module")
def shown(site: WebProcess, upstream: ScriptedUpstream) -> World:
    """One world for all of them, in which there is something to see: they only look."""
    world = World(upstream.url).wait_known(site)
    world.price()
    with connect() as client:
        event = usage_event(
            datetime.now(UTC) - timedelta(hours=1), tenant=world.tenant.pk, project="app", key=world.key.pk,
            model=world.model, currency=world.tenant.currency, labels={"user": "ann"},
            price=Price.objects.get(model=world.model).version,
        )  # fmt: skip
        append(client, event)
        drain_all(client)
    return world


@pytest.fixture(scope="module")
def addresses(shown: World) -> dict[str | None, str]:
    """By its name, each page of the tenant; those of the account and with a question by themselves."""
    tenant = shown.tenant
    known: dict[str, object] = {
        "tenant": tenant.slug,
        "key": shown.key.pk,
        "slug": shown.project.slug,
        "budget": Budget.objects.create(
            tenant=tenant, name="monthly", amount=100, key=shown.key.pk, set_by=SetBy.TENANT
        ).pk,
        "limits": ModelLimits.objects.create(tenant=tenant, key=shown.key.pk, model=shown.model, concurrency=9).pk,
        "invoice": draft_of(tenant, shown.project).pk,
        "position": 1,
        "request_id": UsageRecord.objects.filter(tenant=tenant.pk)[0].pk,
    }
    return (
        {
            name: reverse(f"portal:{name}", kwargs={named: known[named] for named in PAGES[name].pattern.converters})
            for name in SHOWN
        }
        | {path: f"/t/{tenant.slug}/{path}" for path in VARIANTS}
        | {path: path for path in ACCOUNT}
    )


@pytest.fixture(scope="module", params=[(1440, "light"), (390, "dark")], ids=["1440-light", "390-dark"])
def page(request: pytest.FixtureRequest, browser: Browser, site: WebProcess, shown: World) -> Iterator[Page]:
    """The owner's, who came through a login that all can use; nothing may be said on its console."""
    width, scheme = request.param
    user = person(f"olga{width}")
    Member.objects.create(tenant=shown.tenant, user=user, role=Role.OWNER)
    with chromium.tab(browser, site.url, width=width, scheme=scheme) as page:
        page.goto("/account/login/")
        assert chromium.violations(page) == []
        chromium.sign_in(page, user.email, PASSWORD)
        yield page


@pytest.mark.parametrize("name", [*SHOWN, *VARIANTS, *ACCOUNT])
def test_it_is_a_page_that_all_can_use(page: Page, addresses: dict[str | None, str], name: str) -> None:
    """By axe; under the strict policy; without scrolling sideways."""
    answer = page.goto(addresses[name])
    assert answer is not None
    assert answer.headers["content-security-policy"] == PORTAL_POLICY
    assert answer.status == 200
    assert chromium.violations(page) == []
    assert chromium.too_wide(page) == []
    assert not INLINE.search(answer.text())
