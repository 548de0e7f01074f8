"""Real web processes and scripted upstreams.

`web` and `upstream` are a module's own, `web` under each server in turn. `gateway` and `engine` serve the whole
session, for what no server makes a difference to; `quick_webs` are one under each server, for what one does.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest
import redis
from pytest_django import DjangoDbBlocker

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.stores import Services
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World


@pytest.fixture(autouse=True, scope="module")
def committed(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Rows are committed as they are written: other processes have to see them. They go with the module."""
    with django_db_blocker.unblock():
        yield
    services.empty_tables()


@pytest.fixture(scope="module", params=["uvicorn", "daphne"])
def web(
    request: pytest.FixtureRequest, committed: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    """A web process under each server in turn."""
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", request.param, **UNBROKEN)
    try:
        yield process.wait_ready()
    finally:
        process.stop()


# One failure after another is what tests are made of: a breaker would keep the later ones from their upstream.
UNBROKEN = {"HEADRACE_BREAKER_FAILURES": "0"}
# Deadlines that a test can wait for.
QUICK = {
    **UNBROKEN,
    "HEADRACE_LEASE_SECONDS": "1.5",
    "HEADRACE_CLIENT_STALL_SECONDS": "2",
    "HEADRACE_BODY_SECONDS": "2",
    "HEADRACE_DRAIN_SECONDS": "2",
}


@pytest.fixture(scope="session")
def quick_webs(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, WebProcess]]:
    """A web process under each server, side by side for the whole session, with short deadlines."""
    logs = tmp_path_factory.mktemp("quick")
    webs = {server: WebProcess(logs / f"{server}.log", server, **QUICK) for server in ("uvicorn", "daphne")}
    try:
        for web in webs.values():
            web.wait_ready()
        yield webs
    finally:
        for web in webs.values():
            web.stop()


@pytest.fixture(params=["uvicorn", "daphne"])
def quick_web(request: pytest.FixtureRequest, quick_webs: dict[str, WebProcess]) -> WebProcess:
    return quick_webs[request.param]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A failed test shows what its web process said."""
    report = yield
    fixtures = getattr(item, "funcargs", {})
    place = fixtures.get("place") or fixtures.get("site")
    web = fixtures.get("web") or fixtures.get("quick_web") or (place.web if place else None)
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


@pytest.fixture(scope="session")
def gateway(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    """One web process for all modules. It logs all it can, so that what must not be logged can be searched for."""
    log = tmp_path_factory.mktemp("gateway") / "web.log"
    process = WebProcess(
        log,
        HEADRACE_LOG_LEVEL="DEBUG",
        HEADRACE_HEADERS_AFTER_SECONDS="3",
        HEADRACE_MEDIA_HOSTS="images.example",
        HEADRACE_METRICS_TOKEN="token-of-the-tests",
        **UNBROKEN,
    )
    try:
        yield process.wait_ready()
    finally:
        process.stop()
    assert "sk-hr-" not in log.read_text(), "a key is in the log"


@pytest.fixture(scope="session")
def engine() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5, interval_ms=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def place(committed: None, gateway: WebProcess, engine: ScriptedUpstream) -> Place:
    """A module's own tenant, key and model, known to `gateway` and served by `engine`."""
    return Place(gateway, engine)


@pytest.fixture(scope="module")
def sites(committed: None, quick_webs: dict[str, WebProcess], engine: ScriptedUpstream) -> dict[str, Place]:
    """One world of a module, known to a web process under each server."""
    web, *others = quick_webs.values()
    place = Place(web, engine)
    sites = [place, *(place.at(other) for other in others)]
    for site in sites:
        site.wait_known(place.world.model)
    return dict(zip(quick_webs, sites, strict=True))


@pytest.fixture(params=["uvicorn", "daphne"])
def site(request: pytest.FixtureRequest, sites: dict[str, Place]) -> Place:
    """`sites` under each server in turn."""
    return sites[request.param]


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client
