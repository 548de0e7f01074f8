"""What the ledger takes for a usage event, and why not."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from billing.events import COLUMNS, BadEvent, read_event
from billing.tests.stream import usage_event


def row(event: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(COLUMNS, read_event("1-0", json.dumps(event).encode()).row, strict=True))


def test_it_reads_an_event_exactly() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)
    read = row(usage_event(at))
    assert read["admitted_at"] == at
    assert (read["cost"], read["cost_nano"]) == (Decimal("0.000123456789"), 123457)
    assert read["labels"] == '{"team":"search"}'
    assert (read["input_tokens"], read["ttft_ms"], read["finish_reason"]) == (100, 12.5, "stop")


def test_it_takes_an_unpriced_request_and_a_free_one() -> None:
    assert row(usage_event(cost=None, cost_nano=None))["cost"] is None
    assert row(usage_event(cost="0", cost_nano=0))["cost"] == 0


def test_it_takes_a_correction_whose_parts_are_differences() -> None:
    late = usage_event(part=1, input_tokens=0, cached_input_tokens=0, output_tokens=0, reasoning_tokens=2, cost_nano=1)
    assert row(late)["reasoning_tokens"] == 2


def test_it_never_ends_a_request_before_it_began_when_another_clock_is_behind() -> None:
    event = usage_event(finished_at="2020-01-01T00:00:00.000Z")
    assert row(event)["finished_at"] == row(event)["admitted_at"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"v": 2}, "version 2, this ledger knows 1"),
    ({"request_id": "no"}, "request_id is not a UUID"),
    ({"request_id": "00000000-0000-4000-8000-000000000000"}, "not a UUIDv7"),
    ({"request_id": "ffffffff-ffff-7fff-bfff-ffffffffffff"}, "not a UUIDv7 of our age"),
    ({"admitted_at": "2020-01-01T00:00:00Z"}, "admitted_at is not the millisecond inside request_id"),
    ({"admitted_at": "yesterday"}, "admitted_at is not a time"),
    ({"finished_at": ""}, "finished_at is not a time"),
    ({"finished_at": "2026-01-01T00:00:00"}, "finished_at has no zone"),
    ({"tenant": ""}, "tenant is empty"),
    ({"tenant": None}, "Expected `str`, got `null`"),
    ({"key": 5}, "Expected `str`, got `int`"),
    ({"model": "x" * 513}, "model is longer than 512"),
    ({"replica": "a\x00b"}, "replica is longer than 512 characters or holds a NUL"),
    ({"finish_reason": "x" * 600}, "finish_reason is longer"),
    ({"labels": {"user": "a\x00b"}}, "hold a NUL"),
    ({"labels": {"user": "x" * 20_000}}, "labels are larger than 16384 bytes"),
    ({"labels": {"user": 5}}, "Expected `str`, got `int`"),
    ({"labels": ["x"]}, "Expected `object`, got `array`"),
    ({"status": "fine"}, "status is not one of ok,"),
    ({"usage_source": "guessed"}, "usage_source is not one of"),
    ({"currency": "eur"}, "currency is not a code"),
    ({"input_tokens": -1}, "input_tokens is not within"),
    ({"input_tokens": 10**12 + 1}, "input_tokens is not within"),
    ({"input_tokens": 10**400}, ""),
    ({"input_tokens": 1.5}, "Expected `int`, got `float`"),
    ({"input_tokens": "5"}, "Expected `int`, got `str`"),
    ({"input_tokens": True}, "Expected `int`, got `bool`"),
    ({"input_tokens": None}, "Expected `int`, got `null`"),
    ({"cached_input_tokens": 101}, "cached_input_tokens are more than input_tokens"),
    ({"reasoning_tokens": 8}, "reasoning_tokens are more than output_tokens"),
    ({"part": -1}, "part is not within"),
    ({"part": 40_000}, "part is not within"),
    ({"fallback": 10**9}, "fallback is not within"),
    ({"ttft_ms": -1}, "ttft_ms is negative or too long"),
    ({"tpot_ms": float("inf")}, "not a usage event"),
    ({"cost": "NaN"}, "cost is not a decimal"),
    ({"cost": "-1", "cost_nano": 0}, "cost is not a decimal"),
    ({"cost": "1e3", "cost_nano": 0}, "cost is not a decimal"),
    ({"cost": "0.0000000000001", "cost_nano": 1}, "cost is not a decimal of at most 12 places"),
    ({"cost": 0.5, "cost_nano": 500_000_000}, "Expected `str | null`, got `float`"),
    ({"cost": "0.000123456789", "cost_nano": 123456}, "cost_nano is not the ceiling"),
    ({"cost": "0.000123456789", "cost_nano": None}, "cost_nano is not the ceiling"),
    ({"cost": None}, "cost_nano without a cost"),
]


@pytest.mark.parametrize(("changes", "reason"), BAD, ids=[str(changes)[:50] for changes, _ in BAD])
def test_it_says_why_an_event_is_bad(changes: dict[str, Any], reason: str) -> None:
    event = usage_event()
    with pytest.raises(BadEvent) as refused:
        row(event | changes)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"tenant": "\\ud800"}', b"\x00", b"[" * 100_000]
)
def test_it_says_why_text_is_no_event(text: bytes) -> None:
    with pytest.raises(BadEvent, match="not a usage event"):
        read_event("1-0", text)


def test_it_names_each_missing_field() -> None:
    for name in ("request_id", "tenant", "project", "key", "model", "target", "replica", "currency", "admitted_at"):
        event = usage_event()
        del event[name]
        with pytest.raises(BadEvent, match=name):
            row(event)
