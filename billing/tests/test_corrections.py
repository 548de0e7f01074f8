"""A late word sets right what a reaper charged by an estimate, up or down, in every sum that is made of it."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from billing import pricing
from billing.events import COLUMNS, BadEvent, read_event
from billing.exports.record_rows import records_csv
from billing.invoicing.records import first_records, records_behind
from billing.invoicing.tests.making import close, finalise, make_customer, make_price, make_seller, stated, utc, write
from billing.late_pricing import price_unpriced
from billing.ledger_check.report import check
from billing.ledger_check.tests.books import make_caller
from billing.models import Invoice, Price, UsageCorrection, UsageDay, UsageHour
from billing.pricing import Rates
from billing.settlement import Remembered, correction
from billing.tests.stream import connect, usage_event
from billing.usage import UsageEvent, priced

TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
RATES = Rates(Decimal("1.1"), Decimal("0.275"), Decimal("4.4"))


def word(at: datetime | None = None, price: Price | None = None, **changes: Any) -> UsageEvent:
    """What a request's own process says in the end."""
    rates = Rates(price.input, price.cached_input, price.output) if price else None
    named = {"price": price.version if price else None, "rates": rates, "cost": None, "cost_nano": None}
    return priced(msgspec.convert(usage_event(at, reasoning_tokens=0) | named | changes, UsageEvent))


def reaped_first(final: UsageEvent, tokens: tuple[int, int, int, int]) -> list[dict[str, Any]]:
    """The reaper's event, and what the late word appends to it."""
    first = priced(msgspec.structs.replace(final, status="reaped", **dict(zip(TOKENS, tokens, strict=True))))
    late = correction(final, Remembered(*tokens))
    return [msgspec.to_builtins(event) for event in (first, late) if event is not None]


def counts() -> st.SearchStrategy[tuple[int, int, int, int]]:
    def split(drawn: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        prompt, cached, output, reasoning = drawn
        return prompt, min(prompt, cached), output, min(output, reasoning)

    return st.tuples(*[st.integers(0, 10**6)] * 4).map(split)


@given(counts(), counts())
def test_record_and_correction_are_the_last_word(
    first: tuple[int, int, int, int], last: tuple[int, int, int, int]
) -> None:
    tokens = dict(zip(TOKENS, last, strict=True))
    final = priced(msgspec.structs.replace(word(), rates=RATES, price="demo@1", **tokens))
    events = reaped_first(final, first)
    for event in events:
        read_event("1-0", json.dumps(event, default=str).encode())
    assert tuple(sum(event[name] for event in events) for name in TOKENS) == last
    right = pricing.cost(RATES, input_tokens=last[0], cached_input_tokens=last[1], output_tokens=last[2])
    assert sum(Decimal(event["cost"]) for event in events) == right
    assert 0 <= sum(event["cost_nano"] for event in events) - pricing.nano(right) <= 1  # each is rounded up
    assert (len(events) == 1) == (first == last)


@pytest.mark.parametrize("changes", [{"input_tokens": -1}, {"cost": "-0.1", "cost_nano": -1}, {"output_tokens": -5}])
def test_only_a_correction_may_be_less_than_nothing(changes: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        read_event("1-0", json.dumps(usage_event(**changes)).encode())
    read_event("1-0", json.dumps(usage_event(part=1, **changes)).encode())


@pytest.mark.django_db
def test_the_database_takes_no_record_that_is_less_than_nothing() -> None:
    write(usage_event())
    changed = {"request_id": "gen_random_uuid()", "input_tokens": "-1", "cost": "-1", "cost_nano": "-1000000000"}

    def copy(part: int) -> None:
        values = changed | {"part": str(part)}
        columns = ", ".join(values.get(name, name) for name in COLUMNS)
        with transaction.atomic(), connection.cursor() as cursor:
            insert = f"INSERT INTO billing_usagerecord ({', '.join(COLUMNS)})"
            cursor.execute(f"{insert} SELECT {columns} FROM billing_usagerecord LIMIT 1")

    copy(1)
    with pytest.raises(IntegrityError, match="billing_usagerecord_"):
        copy(0)


@pytest.mark.django_db
def test_a_cached_prompt_that_was_estimated_is_given_back_in_every_sum() -> None:
    """A reaper settled 147 uncached tokens of a prompt that had 268, of which 222 were cached."""
    make_customer(seller=make_seller())
    make_caller()
    price = make_price(input="1", cached="0.25", output="4")
    final = word(utc("2026-03-05 12:00"), price, input_tokens=268, cached_input_tokens=222, output_tokens=20)
    write(*reaped_first(final, (147, 0, 12, 0)))
    [late] = UsageCorrection.objects.all()
    assert (late.input_tokens, late.cached_input_tokens, late.output_tokens) == (121, 222, 8)
    assert late.cost == Decimal("-101") / 10**6 + Decimal("222") / 4 / 10**6 + Decimal("32") / 10**6
    right = (46 + Decimal(222) / 4 + 80) / 10**6
    for model in (UsageHour, UsageDay):
        [row] = model.objects.all()
        assert (row.requests, row.corrections, row.cost) == (1, 1, right)
        assert (row.input_tokens, row.cached_input_tokens, row.output_tokens) == (268, 222, 20)
    invoice = finalise(close(utc("2026-04-02"))[0])
    assert [line[4:7] for line in stated(invoice)] == [
        ("uncached", price.version, 46),
        ("cached", price.version, 222),
        ("output", price.version, 20),
    ]
    for line in invoice.lines.all():
        rows = list(records_behind(line).rows())
        assert [row.part for row in rows] == [0, 1] if line.token_class != "cached" else [1]
        assert first_records(line, 10) == rows
    clean()


def invoiced_too_much(discount: str = "0") -> tuple[Invoice, Invoice]:
    """March, invoiced with what a reaper estimated; and April, whose last word of it gives a million tokens back."""
    make_customer(seller=make_seller(), discount_percent=Decimal(discount), tax_rate=Decimal(19))
    make_caller()
    price = make_price(input="1", cached="0.25", output="4")
    final = word(utc("2026-03-31 21:59"), price, input_tokens=1_000_000, cached_input_tokens=0, output_tokens=0)
    first, late = reaped_first(final, (2_000_000, 0, 0, 0))
    write(first)
    march = finalise(close(utc("2026-04-02"))[0])
    write(late)
    following = word(utc("2026-04-05 12:00"), price, input_tokens=5_000_000, cached_input_tokens=0, output_tokens=0)
    write(msgspec.to_builtins(following))
    return march, finalise(close(utc("2026-05-02"))[0])


@pytest.mark.django_db
@pytest.mark.parametrize("discount", ["0", "10", "100"])
def test_what_was_invoiced_too_much_is_on_the_next_invoice(discount: str) -> None:
    march, april = invoiced_too_much(discount)
    off = Decimal(discount) / 100
    assert [line[:2] + line[6:8] for line in stated(april)][:2] == [
        ("usage", "2026-04", 5_000_000, Decimal("5.00")),
        ("adjustment", "2026-03", -1_000_000, Decimal("-1.00")),
    ]
    assert march.net == 2 - 2 * off
    assert april.net == 4 - 4 * off
    assert april.total == sum(line.amount for line in april.lines.all())
    exported = b"".join(records_csv(april.lines.all())).decode().splitlines()
    assert any(",-1000000," in line for line in exported)
    assert not any("'-" in line for line in exported)  # numbers, no text
    clean()


@pytest.mark.django_db
def test_it_is_priced_late_as_its_record_is() -> None:
    make_customer(seller=make_seller())
    make_caller()
    final = word(utc("2026-03-05 12:00"), input_tokens=268, cached_input_tokens=222, output_tokens=12)
    write(*reaped_first(final, (300, 222, 12, 0)))
    make_price(input="1", cached="0.25", output="4")
    with connect() as client:
        assert sum(price_unpriced(client).priced.values()) == 2


def clean() -> None:
    with connect() as client:
        report = check(client, spool=settings.HOME / "spool")
    assert report.is_clean, list(report.as_lines())
