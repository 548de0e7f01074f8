"""What is sent or shown once is so however people click, reload and go back; and what a chart draws can be read."""

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from billing.drain import drain_all
from billing.models import RefusedHour
from billing.tests.stream import append, connect, usage_event
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import ApiKey, Member, Role


def test_it_shows_a_key_once_however_one_clicks(browser: Browser, site: WebProcess, world: World) -> None:
    user = person("dora")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.DEVELOPER)
    with chromium.tab(browser, site.url) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.goto(f"/t/{world.tenant.slug}/keys/new/")
        page.get_by_label("Name").fill("twice")
        page.get_by_role("button", name="Create the key").dblclick()
        expect(page.get_by_role("heading", name="twice is made")).to_be_visible()
        secret = page.locator("#key-text").inner_text()
        assert ApiKey.objects.filter(tenant=world.tenant, name="twice").count() == 1
        page.reload()
        expect(page.get_by_role("heading", name="What it may do")).to_be_visible()
        page.get_by_role("link", name="Overview").click()
        page.go_back()
        expect(page.get_by_role("heading", name="What it may do")).to_be_visible()
        assert secret not in page.content()


@pytest.mark.parametrize("width", [1440, 390])
def test_it_says_in_a_table_what_a_chart_draws(browser: Browser, site: WebProcess, world: World, width: int) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for code, requests in (("no_capacity", 1200), ("budget_exhausted", 7)):
        RefusedHour.objects.create(
            tenant=world.tenant.pk, hour=hour, project="app", key=world.key.pk, code=code, requests=requests
        )
    user = person(f"theo-{width}")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.VIEWER)
    with chromium.tab(browser, site.url, width=width) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.goto(f"/t/{world.tenant.slug}/budgets/refused/")
        expect(page.locator(".legend")).to_contain_text("All replicas were busy 1,200 requests")
        page.get_by_text("Its numbers").focus()
        page.keyboard.press("Enter")
        table = page.get_by_role("region", name="The chart's numbers, in requests")
        expect(table.get_by_role("columnheader")).to_have_text(["Day", "All replicas were busy", "A budget is used up"])
        expect(table.get_by_role("row")).to_have_count(2)
        expect(table.get_by_role("cell")).to_have_text(["1,200", "7"])
        assert chromium.violations(page) == []
        with page.expect_download() as taken:
            page.get_by_role("link", name="Download as CSV").first.click()
        assert taken.value.suggested_filename == f"refused-{world.tenant.slug}-7d-by-time.csv"


def test_it_follows_requests_again_after_it_was_told_no(browser: Browser, site: WebProcess, world: World) -> None:
    """A proxy whose server restarts, or a database that is away, answers an error: to a browser, the end of events."""
    with connect() as client:
        append(client, usage_event(tenant=world.tenant.pk, key=world.key.pk, currency=world.tenant.currency))
        drain_all(client)
    user = person("lena")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.VIEWER)
    with chromium.tab(browser, site.url, expects=["status of 503"]) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.route("**/requests/live/*", lambda route: route.fulfill(status=503, body="away"))
        page.goto(f"/t/{world.tenant.slug}/requests/")
        expect(page.get_by_text("Waiting for the connection")).to_be_visible()
        page.unroute("**/requests/live/*")
        expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=15_000)
