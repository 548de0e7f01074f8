"""An operator drains a replica in a real browser: what runs there finishes, nothing new comes, the page shows it."""

import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect

from engines.models import Replica
from headrace.portal.tests import chromium
from headrace.portal.tests.cast import PASSWORD, person
from headrace_dev.testing.collecting import collected
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from tenants.models import AuditEntry


@pytest.fixture
def first() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture
def second() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


def test_it_drains_a_replica(
    browser: Browser, site: WebProcess, first: ScriptedUpstream, second: ScriptedUpstream
) -> None:
    world = World(first.url).wait_known(site)  # its own: what drains is nobody else's
    pool = Replica.objects.get(url=first.url).pool
    operator = person("otto", is_staff=True, is_superuser=True)
    answer: list[str] = []
    headers, asked = world.headers(), f"{site.url}/v1/chat/completions"

    def stream() -> None:
        body = world.body(prompt(tokens=300, interval_ms=20), stream=True, max_tokens=1000)
        with httpx.stream("POST", asked, json=body, headers=headers, trust_env=False, timeout=60) as response:
            answer.extend(response.iter_lines())

    running = threading.Thread(target=stream)
    with collected(), chromium.tab(browser, site.url) as page:
        page.goto("/admin/")
        page.get_by_label("Login").fill(operator.email)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.goto("/admin/fleet/")
        rows = page.locator(".fleet-pool").filter(has_text=pool.name).get_by_role("row")
        row = rows.filter(has_text="r1")
        expect(row.get_by_text("ready", exact=True)).to_be_visible(timeout=30_000)
        running.start()
        eventually(lambda: first.stats()["open"] == 1, 20)
        Replica.objects.create(pool=pool, name="r2", url=second.url)
        row.get_by_role("button", name="Drain").click()
        expect(page.get_by_text("It finishes what it runs and gets no new requests.")).to_be_visible()
        page.get_by_role("button", name="Drain it").click()
        expect(row.get_by_text("draining", exact=True)).to_be_visible(timeout=30_000)
        expect(rows.filter(has_text="r2").get_by_text("ready", exact=True)).to_be_visible(timeout=30_000)
        time.sleep(0.7)  # every web process has read it by then
        before = len(first.requests())
        for _ in range(4):
            new = httpx.post(asked, json=world.body("Hello"), headers=headers, trust_env=False, timeout=30)
            assert (new.status_code, new.headers["x-headrace-target"]) == (200, pool.name), new.text
        assert len(first.requests()) == before
        assert len(second.requests()) >= 4
        running.join(60)
        assert answer[-2:] == ["data: [DONE]", ""] or answer[-1] == "data: [DONE]", answer[-3:]
        entry = AuditEntry.objects.filter(subject__contains="engines_replica", action="changed").latest("id")
        assert (entry.who, entry.after) == (operator.username, {"enabled": False})
