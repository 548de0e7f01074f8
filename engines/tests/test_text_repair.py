"""What an engine writes that is no Unicode becomes U+FFFD; nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sse import Framer
from engines.text_repair import repair_text

LOST = "\ufffd"


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b'"caf\xe9"', f"caf{LOST}"),
        (b'"\xe2\x82"', LOST),
        (b'"\xac and more"', f"{LOST} and more"),
        (b'"a\xf0\x9f"', f"a{LOST}"),
        (b'"\\ud83d"', LOST),
        (b'"\\uDE00b"', f"{LOST}b"),
        (b'"\\ud83d\\ud83d\\ude00"', f"{LOST}😀"),
        (b'"\\ude00\\ud83d"', LOST * 2),
        (b'"\\ud83d\\n\xe9"', f"{LOST}\n{LOST}"),
        (b'"\\ud83dab"', f"{LOST}ab"),
    ],
)
def test_it_replaces_what_is_no_character(sent: bytes, text: str) -> None:
    assert json.loads(repair_text(sent).decode()) == text


@pytest.mark.parametrize(
    "sent", [rb'"\ud83d\ude00 \uD83D\uDE00"', rb'"C:\\ud83d\\ude00"', '"é😀"'.encode(), b'"\\u00e9"']
)
def test_it_leaves_what_is_sound_as_it_was_written(sent: bytes) -> None:
    assert repair_text(sent) == sent


@given(st.text(), st.booleans())
def test_it_changes_no_json_of_python_s(text: str, is_ascii: bool) -> None:
    sent = json.dumps(text, ensure_ascii=is_ascii).encode()
    assert repair_text(sent) == sent


@given(st.binary(max_size=40))
def test_whatever_comes_a_strict_reader_can_take_it(raw: bytes) -> None:
    text = raw.translate(None, delete=b'"\\' + bytes(range(32)))
    json.loads(repair_text(b'"' + text + b'"').decode())


@pytest.mark.parametrize("at", range(12))
def test_a_character_that_two_reads_share_comes_whole(at: int) -> None:
    framer, body = Framer(), 'data: "€😀"\n\n'.encode()
    assert framer.feed(body[: 6 + at]) + framer.feed(body[6 + at :]) == ['"€😀"'.encode()]
