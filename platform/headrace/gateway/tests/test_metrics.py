"""/metrics: what was served, by tenant, model, target and status; of all processes of a home; for whom it is meant."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.web import WebProcess


def samples(place: Place) -> list[Sample]:
    """All samples that the process tells."""
    text = place.send(b"", path="/metrics", method="GET").raw.decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(found: list[Sample], name: str, **labels: str) -> float:
    return sum(each.value for each in found if each.name == name and labels.items() <= each.labels.items())


@pytest.fixture(scope="module")
def served(place: Place) -> list[Sample]:
    """What is told after four good chats, two failed ones, and some refusals."""
    place.chat("A long enough prompt to be cached. " * 9, max_tokens=4)
    place.chat("A long enough prompt to be cached. " * 9, max_tokens=4)
    place.chat(stream=True, max_tokens=4)
    place.scripted(fields={"stream": True}, usage="null", tokens=4)
    place.scripted(fields={"stream": True}, drop_after=2)
    place.scripted(status=500)
    place.chat(temperature=9)
    place.chat(model="none")
    place.send(b"{}", secret="sk-hr-made-up")
    return samples(place)


def test_it_counts_requests_and_tokens(place: Place, served: list[Sample]) -> None:
    world = place.world
    where = {"model": world.model, "target": world.name}
    by = {"tenant": world.tenant.pk, **where}
    assert value(served, "headrace_requests_total", status="ok", **by) == 4
    assert value(served, "headrace_requests_total", status="error", **by) == 2
    output = value(served, "headrace_tokens_total", **by, **{"class": "output"})
    assert output == 4 + 4 + 4 + 5 + 2  # the fourth by the engine's tokenizer
    cached = value(served, "headrace_tokens_total", **by, **{"class": "cached"})
    assert cached > 50
    assert value(served, "headrace_tokens_total", **by, **{"class": "uncached"}) > 0
    assert value(served, "headrace_usage_estimated_total", **where) == 1
    assert value(served, "headrace_ttft_seconds_count", **where) == 5
    assert value(served, "headrace_tpot_seconds_count", **where) == 3


def test_it_measures_how_long_requests_take(place: Place, served: list[Sample]) -> None:
    where = {"model": place.world.model, "target": place.world.name}
    assert value(served, "headrace_request_seconds_count", **where) == 6
    assert value(served, "headrace_request_seconds_sum", **where) > 0


def test_it_counts_the_streams_that_keep_to_their_route_s_targets(place: Place) -> None:
    fast, slow = place.add_model(ttft_target=20, tpot_target=10), place.add_model(ttft_target=0.2)
    steady = place.add_model(tpot_target=0.005)
    place.wait_known(fast, slow, steady)
    for model, script in (
        (fast, {}),
        (fast, {"status": 500}),
        (slow, {"first_ms": 300}),
        (steady, {"interval_ms": 40}),
    ):
        place.scripted(fields={"model": model, "stream": True}, **script)
    place.scripted(fields={"model": fast})  # not streamed: its first byte is its last
    found = samples(place)
    told = [
        tuple(value(found, "headrace_goodput_total", model=model, within=within) for within in ("yes", "no"))
        for model in (fast, slow, steady, place.world.model)
    ]
    assert told == [(1, 1), (0, 1), (0, 1), (0, 0)]


def test_it_tells_of_usage_on_its_way(place: Place) -> None:
    place.chat()
    assert value(samples(place), "headrace_usage_waiting") >= 1


def test_it_counts_refusals_by_code(served: list[Sample]) -> None:
    for code in ("invalid_request", "model_not_found", "invalid_api_key"):
        assert value(served, "headrace_refused_total", code=code) >= 1


def test_it_labels_nothing_by_key(place: Place, served: list[Sample]) -> None:
    known = {"tenant", "model", "target", "status", "class", "code", "outcome", "le"}
    known |= {"pool", "replica", "within", "task", "reason", "stream"}
    ours = [sample for sample in served if sample.name.startswith("headrace_")]
    assert ours
    assert {label for sample in ours for label in sample.labels} <= known
    told = {text for sample in served for text in sample.labels.values()}
    assert not any(place.world.key.pk in text or "sk-hr" in text for text in told)


def test_it_tells_of_all_processes_of_a_home(place: Place, quick_webs: dict[str, WebProcess]) -> None:
    before = value(samples(place), "headrace_requests_total", model=place.world.model)
    place.chat()
    for web in quick_webs.values():
        assert value(samples(place.at(web)), "headrace_requests_total", model=place.world.model) == before + 1


def test_it_is_for_this_machine_or_who_has_the_token(place: Place, quick_webs: dict[str, WebProcess]) -> None:
    def asked(place: Place, secret: str, **headers: str) -> int:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return place.send(b"", path="/metrics", method="GET", secret=secret, headers=named).status

    proxied = ({"x_forwarded_for": "127.0.0.1"}, {"x_real_ip": "127.0.0.1"}, {"forwarded": "for=127.0.0.1"})
    assert asked(place, "none") == 200
    for headers in proxied:
        assert asked(place, "token-of-the-tests", **headers) == 200
        for wrong in ("none", "", "token-of-the-test", "token-of-the-tests2", place.world.secret):
            assert asked(place, wrong, **headers) == 401
    tokenless = place.at(quick_webs["uvicorn"])
    assert asked(tokenless, "") == 200
    for headers in proxied:
        for wrong in ("", "token-of-the-tests", "none"):
            assert asked(tokenless, wrong, **headers) == 401


def test_commands_leave_no_counters_behind(tmp_path: Path) -> None:
    """They import the metrics with everything else, and every answer would read what they left."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    code = "import django; django.setup(); import headrace.gateway.process.metrics"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.glob("counter_*")) == []
