"""`manage.py cost`, and the exchange rates that `apply` takes and `export` gives back."""

import json
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing.cost.tests.world import DAY, HOUR, pool, up, used
from billing.models import ExchangeRate
from headrace.apply.document import apply_document
from headrace.apply.export import export_document
from headrace.apply.problems import ApplyError

pytestmark = pytest.mark.django_db

RATES = """
exchange_rates:
  - {base: EUR, quote: USD, rate: 1.0875, from: 2026-03-01}
pools:
  gpu: {model: m, gpu_hour_cost: 2.5, cost_currency: EUR, orders_by_priority: true}
"""


def cost(*arguments: str) -> str:
    out = StringIO()
    call_command("cost", "--from", "2026-03-02", "--to", "2026-03-03", *arguments, stdout=out)
    return out.getvalue()


def test_it_prints_a_table_and_one_json_object_with_the_same_figures() -> None:
    pool()
    up(DAY)
    used(DAY, 9_000_000, cost="5")
    used(DAY + HOUR, 1_000_000)
    found: dict[str, Any] = json.loads(cost("--json", "--by", "hour", "--hosted", "0.1", "0.4", "USD"))
    assert found["parameters"]["by"] == "hour"
    first, *_, last = found["lines"]
    assert (first["per_output"], first["margin"], first["hosted_per_output"]) == ("0.277778", "2.500000", "0.400000")
    assert (last["per_output"], last["gap_seconds"]) == (None, 3600)
    assert found["verdict"] == {"complete": False, "gap_seconds": 82800, "missing_rates": []}
    assert found["totals"][0]["cost"] == "2.500000"
    table = cost("--by", "hour").splitlines()
    assert "0.2778" in table[1]
    assert "not sampled" in table[2]


def test_it_tells_a_missing_rate_from_a_missing_sample() -> None:
    pool()
    up(DAY)
    sampled, unsampled = cost("--by", "hour", "--currency", "EUR").splitlines()[1:3]
    assert "no rate USD/EUR" in sampled
    assert "not sampled" not in sampled
    assert "not sampled" in unsampled


def test_it_says_what_is_wrong_with_its_arguments() -> None:
    for arguments in (["--zone", "Mars"], ["--hosted", "a", "b", "USD"], ["--to", "2026-03-01"]):
        with pytest.raises(CommandError):
            cost(*arguments)
    assert "Nothing was sampled" in cost()


def test_it_applies_exchange_rates_once_and_gives_them_back() -> None:
    assert len(apply_document(RATES, source="x", actor="test").changes) == 2
    row = ExchangeRate.objects.get()
    assert (row.base, row.rate, row.day) == ("EUR", Decimal("1.0875"), date(2026, 3, 1))
    assert apply_document(RATES, source="x", actor="test").changes == []
    exported = export_document()
    assert "cost_currency: EUR" in exported
    assert apply_document(exported, source="x", actor="test").changes == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{base: EUR, quote: USD, rate: 0, from: 2026-03-01}", "rate"),
        ("{base: EUR, quote: EUR, rate: 1, from: 2026-03-01}", "worth itself"),
        ("{base: EUR, quote: USD, rate: 1, from: soon}", "wants a day"),
        ("{base: EUR, quote: USD, rate: 1}", "wants from"),
        ("{base: EUR, quote: XXX, rate: 1, from: 2026-03-01}", "XXX"),
    ],
)
def test_it_refuses_a_rate_that_is_none(entry: str, words: str) -> None:
    with pytest.raises(ApplyError) as refused:
        apply_document(f"exchange_rates: [{entry}]", source="x", actor="test")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "words", [("NaN", "1", "USD"), ("1", "Infinity", "USD"), ("-1", "1", "USD"), ("1", "1", "XXL")]
)
def test_it_refuses_a_hosted_price_that_is_none(words: tuple[str, str, str]) -> None:
    with pytest.raises(CommandError, match="--hosted takes two prices"):
        call_command("cost", hosted=list(words))
