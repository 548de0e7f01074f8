"""A web process in front of a real engine: llama.cpp in `make test`, SGLang in `make test-sglang`."""

from collections.abc import Iterator

import pytest
import redis
from pytest_django import DjangoDbBlocker

from headrace_dev.testing.engine import Engine, start_llamacpp, start_sglang
from headrace_dev.testing.stores import Services
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World

ENGINES = [
    pytest.param("llamacpp", marks=pytest.mark.engine),
    pytest.param("sglang", marks=pytest.mark.sglang),
]


@pytest.fixture(autouse=True, scope="package")
def committed(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield
    services.empty_tables()


@pytest.fixture(scope="package", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    log = tmp_path_factory.mktemp("engine") / f"{request.param}.log"
    engine = start_llamacpp(log) if request.param == "llamacpp" else start_sglang(log)
    try:
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="package")
def web(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", "uvicorn")
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.fixture
def world(engine: Engine, web: WebProcess) -> World:
    world = World(engine.url, engine=engine.kind, upstream_model=engine.model, context_window=2048)
    return world.wait_known(web)


@pytest.fixture
def valkey(services: Services) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(services.redis_url) as client:
        yield client
