"""Media that an engine does not take are the request's fault, whatever the engine calls it."""

from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace.gateway.tests.test_fields_media import PIXEL

LLAMACPP = {"error": {"code": 500, "message": "image input is not supported - hint: provide the mmproj", "type": "x"}}
IMAGE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "script",
    [
        {"status": 500, "body": LLAMACPP},
        {"status": 400, "body": {"message": "scripted is not a multimodal model"}},
        {"status": 404, "body": {"error": {"message": "No endpoints found that support image input"}}},
        {"status": 200, "body": LLAMACPP},
    ],
)
def test_images_are_named_in_a_400(place: Place, script: dict[str, Any], stream: bool) -> None:
    place.upstream.reset()
    place.upstream.scripts(script)
    answer = place.chat(IMAGE, stream=stream)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_request", "messages")
    assert answer.error["message"] == "This model takes no images."


def test_text_is_not_judged_by_such_words(place: Place) -> None:
    place.upstream.reset()
    place.upstream.scripts({"status": 500, "body": LLAMACPP})
    assert place.chat("What is an image?").status == 502
