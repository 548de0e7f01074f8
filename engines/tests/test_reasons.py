"""What is told of an engine's words: the sentence, and nothing that is nobody's business."""

from typing import Any

import pytest

from engines.reasons import LONGEST, fit_to_tell, read_reason

SENTENCES: list[tuple[Any, str]] = [
    ({"message": "top_logprobs requires logprobs to be true"}, "top_logprobs requires logprobs to be true"),
    (
        {"message": "Invalid JSON schema: 'strin' is not valid at #/properties/a", "code": 400},
        "Invalid JSON schema: 'strin' is not valid at #/properties/a",
    ),
    (
        {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted", "input": {"a": 1}}]},
        "stream_options: Extra inputs are not permitted",
    ),
    ({"message": "Provider returned error", "metadata": {"raw": "n must be 1"}}, "Provider returned error n must be 1"),
    (
        {"message": "1 validation error for Request\ntemperature\n  too high [type=less_than, input_value=9]"},
        "1 validation error for Request temperature too high",
    ),
    ({"message": "The model `qwen-internal` lacks this"}, "The model `public` lacks this"),
    ("temperature must be at most 2, got 3.5", "temperature must be at most 2, got 3.5"),
]
SECRETS = [
    "/usr/lib/python3/site-packages/sglang/engine.py",
    "C:\\models\\llama.gguf",
    "~/models/x.gguf",
    "./x.py",
    "http://10.0.0.7:30000/v1",
    "10.0.0.7",
    "fe80::1:2:3",
    "engine-3.internal",
    "engine:30000",
    "sk-proj-abcdefgh",
    "Bearer abc.def",
    "api_key=hunter2",
    "me@corp.example",
    "Qwen/Qwen3-8B",
    "<__main__.Engine object at 0x7f12ab>",
    "0x7f12ab34",
    "d41d8cd98f00b204e9800998ecf8427e",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
]


@pytest.mark.parametrize(("detail", "sentence"), SENTENCES)
def test_sentence_is_told(detail: Any, sentence: str) -> None:
    assert fit_to_tell(read_reason(detail), renamed={"qwen-internal": "public"}) == sentence


@pytest.mark.parametrize("secret", SECRETS)
def test_secret_is_not(secret: str) -> None:
    for form in (f"The field is invalid: {secret} says so", f"The field is invalid '{secret}'", f"Invalid ({secret})."):
        told = fit_to_tell(form) or ""
        assert secret not in told
        assert told.startswith(("The field is invalid", "Invalid"))
    assert secret not in (fit_to_tell(secret) or "")


def test_what_a_client_sent_is_not_repeated() -> None:
    prompt = "my very private prompt " * 5
    for form in (
        f"Bad message: '{prompt}' is not allowed",
        f"{{'type': 'missing', 'msg': 'Field required', 'input': {{'messages': '{prompt}'}}}}",
        f"1 error\n  bad [type=x, input_value='{prompt}']",
        f'Unclosed "{prompt}',
    ):
        assert "private" not in (fit_to_tell(form) or "")


@pytest.mark.parametrize("nothing", ["", "   ", "\x00\x01", "[]", "{}", "12345", None, 7, [], {}, {"error": {}}])
def test_nothing_is_made_of_nothing(nothing: Any) -> None:
    assert fit_to_tell(read_reason(nothing)) is None


def test_it_is_bounded_printable_and_quick() -> None:
    for text in ("word " * 10_000, "a" * 10_000, "/" * 10_000, "'" * 10_000, "a." * 5000, "a:" * 5000, "<" * 9999):
        assert len(fit_to_tell(read_reason(text)) or "") <= LONGEST
    assert "\n" not in (fit_to_tell("one\ntwo three\x1b[31m") or "")
