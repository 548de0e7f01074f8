"""Media that a model is known not to take are refused before any engine is asked, or go to a target that takes them."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engines.models import Pool, Provider
from headrace.gateway.tests.calling import Hosted, Place
from headrace.gateway.tests.fleet import scripted_fleet
from headrace.gateway.tests.test_fields_media import PIXEL
from headrace_dev.testing.collecting import collected
from headrace_dev.testing.upstream import ScriptedUpstream
from routing.models import Target

IMAGE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
TEXT_ONLY = {"has_image_understanding": False, "has_audio_understanding": False, "architectures": ["LlamaForCausalLM"]}


@pytest.fixture(scope="module")
def fleet(committed: None) -> Iterator[list[ScriptedUpstream]]:
    with scripted_fleet(2) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
def anew(fleet: list[ScriptedUpstream]) -> None:
    for engine in fleet:
        engine.reset()


def refuses_images(place: Place, model: str, **fields: Any) -> bool:
    answer = place.chat(IMAGE, model=model, **fields)
    return answer.status == 400 and answer.error == {
        "message": "This model takes no images.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "invalid_request",
    }


def within(seconds: float, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def pools(model: str) -> "list[Pool]":
    found = Target.objects.filter(route__model_id=model, pool__isnull=False).order_by("position")
    return [target.pool for target in found if target.pool]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_images_are_refused_unsent_where_the_pool_takes_none(
    place: Place, fleet: list[ScriptedUpstream], stream: bool
) -> None:
    model = place.add_route([fleet[0].url])
    Pool.objects.filter(name=pools(model)[0].name).update(modalities=["text", "audio"])
    within(10, lambda: refuses_images(place, model, stream=stream))
    fleet[0].reset()
    for _ in range(8):
        assert refuses_images(place, model, stream=stream)
    assert place.chat(model=model, stream=stream).status == 200
    assert len(fleet[0].requests()) == 1
    assert place.metric("headrace_breaker_state", upstream=f"{pools(model)[0].name}/r0") == 0


def test_images_go_to_the_target_that_takes_them(place: Place, fleet: list[ScriptedUpstream]) -> None:
    model = place.add_route([fleet[0].url], Hosted(fleet[1].url))
    Pool.objects.filter(name=pools(model)[0].name).update(modalities=["text"])
    within(
        10, lambda: bool(place.chat(IMAGE, model=model).record["target"] == Provider.objects.latest("created_at").name)
    )
    fleet[0].reset()
    answer = place.chat(IMAGE, model=model)
    assert (answer.status, answer.record["fallback"], fleet[0].requests()) == (200, 0, [])
    assert place.chat(model=model).record["target"] == pools(model)[0].name
    answer = place.chat(IMAGE, model=model, headers={"x-headrace-fallback": "off"})
    assert (answer.status, answer.error["message"]) == (400, "This model takes no images.")


def test_condition_of_the_only_target_names_the_images(place: Place, fleet: list[ScriptedUpstream]) -> None:
    model = place.add_route([fleet[0].url])
    Target.objects.filter(route__model_id=model).update(conditions={"modalities": ["text"]})
    within(10, lambda: refuses_images(place, model))


def test_it_is_learned_from_the_engines_and_each_of_a_pool_judged_by_itself(
    place: Place, fleet: list[ScriptedUpstream]
) -> None:
    model = place.add_route([engine.url for engine in fleet], policy="round_robin")
    with collected():
        fleet[0].about(**TEXT_ONLY)
        within(90, lambda: not _is_asked_for_images(place, model, fleet[0]))
        answers = [place.chat(IMAGE, model=model) for _ in range(4)]
        assert {(answer.status, answer.record["replica"][-2:]) for answer in answers} == {(200, "r1")}
        assert {place.chat(model=model).record["replica"][-2:] for _ in range(4)} == {"r0", "r1"}
        fleet[1].about(**TEXT_ONLY)
        within(30, lambda: refuses_images(place, model))


def _is_asked_for_images(place: Place, model: str, engine: ScriptedUpstream) -> bool:
    before = len(engine.requests())
    for _ in range(4):
        place.chat(IMAGE, model=model)
    return len(engine.requests()) > before
