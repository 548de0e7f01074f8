"""Usage in all the wrong forms that gateways have met."""

import json
from typing import Any

import pytest

from headrace_dev.simulator.process import ScriptedUpstream
from headrace_dev.simulator.tests.calling import ASKED, body, events, fetch

ABSENT = "absent"


def shown(upstream: ScriptedUpstream, kind: str, also: dict[str, Any]) -> list[Any]:
    """The usage of each chunk of a stream of two tokens after the role chunk: 2 content, finish, and what follows."""
    chunks = events(fetch(upstream, body(tokens=2, prompt_tokens=9, usage=kind, also=also)))
    return [
        usage if not isinstance(usage := chunk.get("usage", ABSENT), dict) else usage.get("completion_tokens", usage)
        for chunk in chunks[1:-1]
    ]


@pytest.mark.parametrize(
    ("kind", "asked", "unasked"),
    [
        ("asked", [1, 2, ABSENT, 2], [ABSENT] * 3),
        ("continuous", [1, 2, ABSENT, 2], [1, 2, ABSENT, 2]),
        ("final", [ABSENT] * 3 + [2], [ABSENT] * 3 + [2]),
        ("finish", [ABSENT, ABSENT, 2], [ABSENT, ABSENT, 2]),
        ("twice", [1, 2, 2, 2, 2], [1, 2, 2, 2, 2]),
        ("none", [ABSENT] * 3, [ABSENT] * 3),
        ("null", [None] * 3, [None] * 3),
        ("null_zero", [None, None, None, 0], [None, None, None, 0]),
        ("zero", [0, 0, ABSENT, 0], [ABSENT] * 3),
        ("negative", [-1, -2, ABSENT, -2], [ABSENT] * 3),
        ("string", ["1", "2", ABSENT, "2"], [ABSENT] * 3),
        ("huge", [10**30, 10**30, ABSENT, 10**30], [ABSENT] * 3),
        ("partial", [{"prompt_tokens": 9}, {"prompt_tokens": 9}, ABSENT, {"prompt_tokens": 9}], [ABSENT] * 3),
    ],
)
def test_it_reports_usage_as_told(upstream: ScriptedUpstream, kind: str, asked: Any, unasked: Any) -> None:
    assert shown(upstream, kind, ASKED) == asked
    assert shown(upstream, kind, {}) == unasked


def test_it_claims_more_cached_than_prompt_tokens(upstream: ScriptedUpstream) -> None:
    request = body(stream=False, tokens=1, prompt_tokens=9, usage="cached_over_prompt")
    usage = json.loads(fetch(upstream, request))["usage"]
    assert usage["prompt_tokens"] == 9
    assert usage["prompt_tokens_details"]["cached_tokens"] == 109


@pytest.mark.parametrize(("kind", "usage"), [("none", ABSENT), ("null", None)])
def test_it_leaves_usage_out_of_a_whole_answer(upstream: ScriptedUpstream, kind: str, usage: Any) -> None:
    assert json.loads(fetch(upstream, body(stream=False, tokens=1, usage=kind))).get("usage", ABSENT) == usage
