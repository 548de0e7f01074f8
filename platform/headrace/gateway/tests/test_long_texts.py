"""Long texts are cut out, checked and put back; what is sent is what a decoder would have made of the whole."""

import json
from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.dialects.chat_completions import long_texts
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.errors import ApiError

TEXTS = st.text(st.sampled_from('ab\\"\n\t/é€😀\u2028\ud7ff\0'), min_size=1, max_size=60)


def run(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


@given(TEXTS, st.booleans(), st.integers(16, 60))
def test_a_text_is_written_as_if_it_had_been_read_whole(text: str, is_ascii: bool, size: int) -> None:
    literal = json.dumps(text, ensure_ascii=is_ascii)[1:-1].encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "SLICE", size)
        raw, length = run(long_texts.rewrite(literal))
    assert bytes(raw) == msgspec.json.encode(text)
    assert length == len(text.encode())


@pytest.mark.parametrize("unit", ["word ", "你好", '"', "\n", "\\", "é", "😀", '\\"x'])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_long_message_says_what_a_short_one_would(unit: str, is_ascii: bool) -> None:
    text = unit * (700_000 // len(unit.encode()))
    messages = [
        {"role": "system", "content": "short"},
        {"role": "user", "content": [{"type": "text", "text": text}, {"type": "text", "text": "end"}]},
        {"role": "assistant", "content": text, "reasoning_content": text},
        {"role": "user", "content": "now"},
    ]
    chat = parse(json.dumps({"model": "m", "messages": messages}, ensure_ascii=is_ascii).encode(), [])
    sent = json.loads(b"[" + chat.prompt_text() + b"]")
    assert sent == messages
    assert chat.content.text_bytes == 3 * len(text.encode()) + len("shortendnow")


def test_a_long_text_elsewhere_is_no_message_s() -> None:
    text = "x" * 300_000
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"text": text}}}],
    }
    chat = parse(json.dumps(body).encode(), [])
    assert json.loads(bytes(chat.passed["tools"]))[0]["function"]["parameters"]["text"] == text


@pytest.mark.parametrize("bad", [b"\\ud83d", b"\xff", b"\\x", b"\n", b"\xe2\x82"])
def test_a_long_text_that_is_none_is_refused(bad: bytes) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"%s%s%s"}]}' % (b"x" * 300_000, bad, b"y" * 300_000)
    with pytest.raises(ApiError) as raised:
        parse(body, [])
    assert raised.value.status == 400


def test_an_image_s_data_may_be_long() -> None:
    url = "data:image/png;base64," + "QUJD" * 200_000
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    chat = parse(json.dumps({"model": "m", "messages": [message]}).encode(), [])
    assert json.loads(b"[" + chat.prompt_text() + b"]") == [message]
    assert chat.content.text_bytes == 0
