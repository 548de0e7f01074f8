"""A real browser before a real web process: from the invitation to a request on record; a stream that is stopped."""

import re
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
import redis
from playwright.sync_api import Browser, expect, sync_playwright

from headrace.portal.headers import PORTAL_POLICY
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace.testing.stores import Services
from headrace.testing.upstream import ScriptedUpstream, prompt
from headrace.testing.web import WebProcess
from headrace.testing.world import World, drained
from tenants.inviting import invite
from tenants.models import Member, Role

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")

PAGES = (
    "", "usage/", "usage/?by=hour&period=today", "requests/", "playground/", "models/", "keys/", "keys/new/",
    "projects/", "projects/new/", "members/", "audit/", "settings/", "budgets/",
    "budgets/new/", "budgets/limits/", "budgets/limits/new/", "budgets/alerts/", "budgets/webhooks/",
    "budgets/webhooks/new/", "invoices/", "invoices/current/",
)  # fmt: skip
ACCOUNT = ("/account/sessions/", "/account/2fa/", "/account/email/", "/account/password/change/")
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\s(style|on\w+)=", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("portal") / "web.log")
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def world(site: WebProcess, upstream: ScriptedUpstream) -> World:
    world = World(upstream.url)
    world.price()
    return world.wait_known(site)


@pytest.fixture(scope="module")
def browser(world: World) -> Iterator[Browser]:
    """Playwright's loop runs in this thread: Django is told that rows are read between its steps, not within."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = chromium.start(playwright)
        yield browser
        browser.close()


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client


def wait_for(done: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_leads_from_an_invitation_to_a_request_on_record(
    browser: Browser, site: WebProcess, world: World, valkey: "redis.Redis"
) -> None:
    _, token = invite(tenant=world.tenant, email="nina@example.com", role=Role.DEVELOPER, invited_by="Alice")
    with chromium.tab(browser, site.url) as page:
        page.goto(f"/join/{token}/")
        page.get_by_label("Your name").fill("Nina")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_label("The same once more").fill(PASSWORD)
        page.get_by_role("button", name=re.compile("^Join")).click()
        expect(page.get_by_role("heading", name=re.compile("^Welcome"))).to_be_visible()
        page.get_by_role("link", name="API keys").click()
        page.get_by_role("link", name="Create a key").click()
        page.get_by_label("Name").fill("first")
        page.get_by_role("button", name="Create the key").click()
        text = page.locator("#key-text").inner_text()
        world.wait_known(site, secret=text)

        def call() -> str:
            answer = httpx.post(
                f"{site.url}/v1/chat/completions",
                json=world.body("Hello"),
                headers=world.headers(text),
                trust_env=False,
            )
            assert answer.status_code == 200, answer.text
            return str(answer.headers["x-request-id"])

        first = call()
        drained(valkey)
        page.get_by_role("link", name="Requests").click()
        expect(page.locator(f"tr[data-id='{first}']")).to_be_visible()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        second = call()
        drained(valkey)
        expect(page.locator(f"tr[data-id='{second}']")).to_be_visible(timeout=15_000)
        page.locator(f"tr[data-id='{second}'] a").click()
        expect(page.get_by_role("heading", name="What it cost")).to_be_visible()
        expect(page.get_by_text("Uncached input")).to_be_visible()
        assert chromium.violations(page) == []
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("heading", name="By model")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        page.go_back()
        page.reload()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_it_stops_a_stream_and_the_engine_with_it(
    browser: Browser, site: WebProcess, world: World, upstream: ScriptedUpstream
) -> None:
    user = person("paula")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.DEVELOPER)
    with chromium.tab(browser, site.url) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.get_by_role("link", name="Playground").click()
        page.get_by_label("Model").select_option(world.model)
        page.get_by_label("Most output").fill("50000")
        page.get_by_label("Your message").fill(prompt(tokens=40_000, interval_ms=20))
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#ttft")).to_contain_text("ms", timeout=15_000)
        wait_for(lambda: upstream.stats()["open"] == 1)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        wait_for(lambda: upstream.stats()["open"] == 0, 5)
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        page.get_by_label("Your message").fill("Hello")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Finished:")).to_be_visible(timeout=15_000)
        expect(page.locator("#cost")).to_contain_text("USD")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_it_has_pages_that_all_can_use(
    browser: Browser, site: WebProcess, world: World, width: int, scheme: str
) -> None:
    """By axe; under the strict policy; with nothing on the console; without scrolling sideways."""
    user = person(f"olga{width}")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.OWNER)
    with chromium.tab(browser, site.url, width=width, scheme=scheme) as page:
        page.goto("/account/login/")
        assert chromium.violations(page) == []
        chromium.sign_in(page, user.email, PASSWORD)
        own = [f"/t/{world.tenant.slug}/{path}" for path in (*PAGES, f"keys/{world.key.pk}/", "projects/app/")]
        for path in (*own, *ACCOUNT, "/?choose"):
            answer = page.goto(path)
            assert answer is not None
            assert answer.headers["content-security-policy"] == PORTAL_POLICY, path
            assert answer.status == 200, path
            assert chromium.violations(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert not INLINE.search(answer.text()), path


def test_it_can_be_used_by_keyboard(browser: Browser, site: WebProcess, world: World) -> None:
    user = person("kim")
    Member.objects.create(tenant=world.tenant, user=user, role=Role.VIEWER)
    with chromium.tab(browser, site.url) as page:
        chromium.sign_in(page, user.email, PASSWORD)
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to the content")
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
