"""Fixtures of the real engines: each starts once a session, and only where a test asks for it."""

import os
from collections.abc import Iterator

import pytest
from django.conf import settings

from headrace.stack import ports
from headrace.stack.part import Part
from headrace.stack.parts.engine import LlamaCpp, SGLang
from headrace.stack.process import Process
from headrace.testing.services import Services


@pytest.fixture(scope="session")
def llamacpp_url(services: Services) -> Iterator[str]:
    """The demo model on llama.cpp, as `manage.py up` runs it."""
    engine = LlamaCpp(free_port())
    yield from _run(engine, services, engine.url)


@pytest.fixture(scope="session")
def sglang_url(services: Services) -> Iterator[str]:
    """A real SGLang: the one at SGLANG_URL, else one on this CPU, which takes a minute to start."""
    if url := os.environ.get("SGLANG_URL"):
        yield url.rstrip("/")
        return
    engine = SGLang(free_port(), settings.ROOT / ".venv-sglang")
    yield from _run(engine, services, engine.url)


def _run(engine: Part, services: Services, url: str) -> Iterator[str]:
    process = Process(engine, services.home / "logs")
    process.start()
    try:
        process.wait_ready()
        yield url
    finally:
        process.kill()


def free_port() -> int:
    with ports.reserve() as holder:
        return ports.number(holder)
