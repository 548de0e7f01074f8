"""One web process, one upstream and one browser for all of these tests: starting them takes longer than most."""

from collections.abc import Iterator

import pytest
import redis
from django.db import connections
from playwright.sync_api import Browser, sync_playwright
from pytest_django import DjangoDbBlocker

from headrace.portal.tests import chromium
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World


@pytest.fixture(autouse=True, scope="package")
def committed(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As of the folder above, for all of these modules together."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()
    services.empty_tables()


@pytest.fixture(scope="package")
def site(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("portal") / "web.log")
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.fixture(scope="package")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture
def world(site: WebProcess, upstream: ScriptedUpstream) -> World:
    """A test's own: what one leaves behind, budgets or drafts of invoices, is no other's."""
    world = World(upstream.url).wait_known(site)
    world.price()
    return world


@pytest.fixture(scope="package")
def browser(site: WebProcess) -> Iterator[Browser]:
    """Playwright's loop runs in this thread: Django is told that rows are read between its steps, not within."""
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium on this machine")  # .ci/run installs it
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = chromium.start(playwright)
        yield browser
        browser.close()
        connections.close_all()  # those made while the loop runs are others, which nobody finds after it


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client
