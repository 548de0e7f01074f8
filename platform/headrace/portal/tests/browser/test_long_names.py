"""Names as long as they may be, in one word: on the narrowest screen no page is wider than it, and no card."""

from playwright.sync_api import Browser

from billing.models import Budget, SetBy
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import Member, Role
from tenants.tests.cast import make_key, make_project, make_tenant

PAGES = ("", "keys/", "projects/", "budgets/", "budgets/limits/", "budgets/new/", "members/", "models/", "settings/")


def test_it_keeps_long_names_on_the_screen(browser: Browser, site: WebProcess, world: World) -> None:
    tenant = make_tenant("l" * 63, name="W" * 200)
    project = make_project(tenant, "p" * 63)
    make_key(project, "K" * 100)
    Budget.objects.create(tenant=tenant, name="b" * 63, amount="999999999", model=world.model, set_by=SetBy.TENANT)
    user = person("lou" * 30)
    for each in (tenant, world.tenant):
        Member.objects.create(tenant=each, user=user, role=Role.OWNER)
    with chromium.tab(browser, site.url, width=390) as page:
        page.goto("/account/login/")
        page.get_by_label("Login").fill(user.email)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{site.url}/")
        wide = {}
        for path in ("/", *(f"/t/{tenant.pk}/{name}" for name in PAGES)):
            page.goto(path)
            if found := chromium.too_wide(page):
                wide[path] = found
        assert wide == {}
