"""A tenant's failing requests do not multiply the load on replicas that all share, nor spend the others' retries."""

from collections.abc import Iterator

import pytest

from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.conftest import UNBROKEN
from headrace.gateway.tests.fleet import scripted_fleet
from headrace_dev.testing.upstream import ScriptedUpstream
from headrace_dev.testing.web import WebProcess

REQUESTS = 60


@pytest.fixture(scope="module")
def web(committed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    process = WebProcess(tmp_path_factory.mktemp("web") / "web.log", **UNBROKEN)
    try:
        yield process.wait_ready()
    finally:
        process.stop()


def test_one_tenant_s_failures_are_retried_within_its_own_budget(web: WebProcess) -> None:
    with scripted_fleet(3) as fleet:
        poor, other = Place(web, fleet[0]), Place(web, fleet[0])
        model = other.add_route([engine.url for engine in fleet], policy="round_robin")
        poor.world.model = other.world.model = model
        poor.wait_known(model)

        answers = [poor.scripted(str(number), status=500) for number in range(REQUESTS)]
        assert {answer.status for answer in answers} == {502}
        assert attempts(fleet) <= REQUESTS + 10
        told = poor.metric("headrace_retries_total", outcome="no_budget")
        assert told >= REQUESTS - 10
        assert poor.scripted("once more", status=500).record["labels"]["attempts"].count("status 500") == 1

        fleet[0].scripts({"status": 500})
        served = [other.chat() for _ in range(3)]
        assert [answer.status for answer in served] == [200] * 3
        assert sum(answer.record["fallback"] for answer in served) == 1
        assert other.metric("headrace_retries_total", outcome="no_budget") == told + 1


def attempts(fleet: list[ScriptedUpstream]) -> int:
    return sum(len(engine.requests()) for engine in fleet)
