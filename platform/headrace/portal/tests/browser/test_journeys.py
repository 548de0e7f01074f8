"""A real browser before a real web process: from the invitation to a request on record; a stream that is stopped."""

import re

import httpx
import redis
from playwright.sync_api import Browser, expect

from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World, drained
from tenants.invitations import invite
from tenants.models import Member, Role


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
        expect(page.locator("#ttft")).to_have_text(re.compile(r"\d m?s$"), timeout=15_000)
        eventually(lambda: upstream.stats()["open"] == 1, 20)
        expect(page.locator("#cost")).to_contain_text("over 0.")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        eventually(lambda: upstream.stats()["open"] == 0, 5)
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        page.get_by_label("Your message").fill("Hello")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Finished:")).to_be_visible(timeout=15_000)
        expect(page.locator("#cost")).to_contain_text("USD")
