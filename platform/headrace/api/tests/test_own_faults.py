"""Requests that no engine gets through leave the engines to the others."""

from collections.abc import Iterator

import pytest

from headrace.api.tests.calling import Place
from headrace.testing.upstream import ScriptedUpstream
from headrace.testing.web import WebProcess

FAILURES = 3


@pytest.fixture(scope="module")
def web(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", HEADRACE_BREAKER_FAILURES=str(FAILURES))
    try:
        yield process.wait_ready()
    finally:
        process.stop()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_it_leaves_no_engine_alone_for_one_tenant_s_requests(
    web: WebProcess, engine: ScriptedUpstream, stream: bool
) -> None:
    poor, other = Place(web, engine), Place(web, engine)
    poor.world.model = other.world.model
    poor.wait_known(other.world.model)
    assert other.chat(stream=stream).status == 200
    for _ in range(3 * FAILURES):
        assert poor.scripted(fields={"stream": stream}, status=500).status == 502
    assert poor.chat(stream=stream).status == 200
    assert other.chat(stream=stream).status == 200

    engine.script(status=500)
    statuses = [each.chat(stream=stream).status for _ in range(FAILURES + 1) for each in (poor, other)]
    assert statuses[0] == 502
    assert statuses[-1] == 503, "one that fails at everybody's is broken"
    engine.reset()
