"""Images, video and sound: from `data:` addresses and listed hosts alone, and weighed by kind, not by length."""

import base64
import time
from typing import Any

import pytest

from headrace.gateway.tests.calling import Answer, Place

PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + b"\0" * 60).decode()


def image(url: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url, **more}}]


def refused(answer: Answer) -> None:
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_request", "messages")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "/etc/passwd",
        "etc/passwd",
        "",
        "http://other.example/x.png",
        "http://127.0.0.1/x.png",
        "http://169.254.169.254/latest/meta-data",
        "http://images.example.evil.example/x.png",
        "http://evil.example/images.example",
        "http://evil.example#images.example",
        "http://evil.example?images.example",
        "http://images.example@evil.example/x.png",
        "http://user:pass@images.example/x.png",
        "http://images.example\\@evil.example/x.png",
        "http://evil.example\\.images.example/x.png",
        "http://images.example:99999999/x.png",
        "http://[::1/x.png",
        "ftp://images.example/x.png",
        "gopher://images.example/",
        "//images.example/x.png",
        " http://images.example/x.png",
        "http://images.example/x.png\n",
        "ht\ntp://images.example/x.png",
        "http://images.example\t/x.png",
        "http:images.example/x.png",
        "data:image/png,plain",
        "data:text/html;base64,PGI+",
        "data:;base64,AAAA",
        "data:image/png;base64",
        "DATA:image/png;base64,AAAA",
        "data:image/png;" + "x" * 200 + ";base64,AAAA",
        "s3://bucket/x.png",
        "https://xn--images-example/x.png",
    ],
)
def test_it_lets_no_engine_open_what_is_not_listed(place: Place, url: str) -> None:
    place.upstream.reset()
    refused(place.chat(image(url)))
    assert place.upstream.requests() == []


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_it_checks_parts_of_every_role(place: Place, role: str) -> None:
    more = {"tool_call_id": "c"} if role == "tool" else {}
    refused(place.chat(messages=[{"role": role, "content": image("file:///etc/passwd"), **more}]))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": "file:///etc/passwd"},
        {"type": "image_url", "image_url": {"url": PIXEL, "path": "/etc/passwd"}},
        {"type": "image_url", "image_url": {"url": PIXEL}, "uuid": "x"},
        {"type": "image_url", "image_url": {"url": 7}},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "enormous"}},
        {"type": "image", "image": "/etc/passwd"},
        {"type": "video_url", "video_url": {"url": PIXEL}},
        {"type": "audio_url", "audio_url": {"url": "file:///etc/passwd"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "exe"}},
        {"type": "input_audio", "input_audio": {"data": "/etc/passwd", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "file:///etc/passwd", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "/proc/1/maps", "format": "wav"}},
    ],
)
def test_it_takes_no_other_form_of_a_part(place: Place, part: dict[str, Any]) -> None:
    answer = place.chat([part])
    assert (answer.status, answer.error["param"]) == (400, "messages")
    assert answer.error["code"] in {"invalid_request", "unsupported_parameter"}


def test_it_passes_data_and_listed_hosts(place: Place) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF" * 11).decode(), "format": "wav"}}
    for parts in (
        image(PIXEL),
        image(PIXEL, detail="low"),
        image("https://images.example/a/b.png?size=1"),
        image("https://IMAGES.example:8443/b.png", detail="high"),
        [audio],
        [{"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}],
    ):
        assert place.chat(parts).status == 200
        assert place.seen()["body"]["messages"] == [{"role": "user", "content": parts}]


def test_it_weighs_an_image_by_its_kind(place: Place) -> None:
    """Two megabytes of PNG are no half a million tokens."""
    _, secret = place.world.add_key(input_tokens_per_minute=5000, output_tokens_per_minute=50_000)
    place.wait_known(secret=secret)
    large = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + b"\xa5" * 2_000_000).decode()
    began = time.monotonic()
    for parts, least, most in ((image(large), 3000, 4950), (image(large, detail="low"), 3000, 4950)):
        answer = place.chat(parts, secret=secret, max_tokens=5)
        assert answer.status == 200, answer.raw
        assert least < int(answer.headers["x-ratelimit-remaining-input-tokens"]) < most
    tool = {"role": "tool", "tool_call_id": "c", "content": image(large)}
    assert place.chat(secret=secret, max_tokens=5, messages=[tool]).status == 200
    assert time.monotonic() - began < 10
