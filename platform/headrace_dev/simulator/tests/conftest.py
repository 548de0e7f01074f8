"""One upstream for a test module, reset before each test."""

from collections.abc import Iterator

import pytest

from headrace_dev.simulator.process import ScriptedUpstream


@pytest.fixture(scope="module")
def process() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(tokens=5) as upstream:
        yield upstream


@pytest.fixture
def upstream(process: ScriptedUpstream) -> ScriptedUpstream:
    process.reset()
    return process
