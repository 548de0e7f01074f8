"""Real web processes, one under each server, and a scripted upstream, shared by the tests of a module."""

from collections.abc import Generator, Iterator
from typing import Any

import pytest
import redis
from pytest_django import DjangoDbBlocker

from headrace.testing.services import Services
from headrace.testing.upstream import ScriptedUpstream
from headrace.testing.web import WebProcess
from headrace.testing.world import World


@pytest.fixture(autouse=True, scope="module")
def committed(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Rows are committed as they are written: other processes have to see them."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module", params=["uvicorn", "daphne"])
def web(
    request: pytest.FixtureRequest, committed: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    """A web process under each server in turn."""
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", request.param)
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A failed test shows what its web process said."""
    report = yield
    web = getattr(item, "funcargs", {}).get("web")
    if report.when == "call" and report.failed and web is not None:
        report.sections.append(("web process", web.log.read_text()[-6000:]))
    return report


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as upstream:
        yield upstream


@pytest.fixture
def world(upstream: ScriptedUpstream) -> World:
    upstream.reset()
    return World(upstream.url)


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client
