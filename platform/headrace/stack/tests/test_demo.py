"""What the demo brings in, and what it leaves to the operator at later starts."""

from pathlib import Path

import pytest

from engines.models import Pool, Replica
from headrace.stack import banner, demo

pytestmark = pytest.mark.django_db


def test_it_counts_engine_cost_in_the_currency_of_its_price_until_an_operator_says_otherwise(tmp_path: Path) -> None:
    start(tmp_path, "http://127.0.0.1:9001")
    assert Pool.objects.get().cost_currency == "EUR"
    Pool.objects.update(cost_currency="USD")
    start(tmp_path, "http://127.0.0.1:9002")
    assert Pool.objects.get().cost_currency == "USD"
    assert Replica.objects.get().url == "http://127.0.0.1:9002"


def start(home: Path, engine_url: str) -> None:
    demo.prepare(home / "demo.json", url="http://127.0.0.1:8080", engine="llamacpp", engine_url=engine_url)


def test_it_gives_no_line_to_paste_where_no_engine_would_answer(tmp_path: Path) -> None:
    start(tmp_path, "")
    assert "curl" in banner.text(tmp_path / "demo.json", has_engine=True)
    shown = banner.text(tmp_path / "demo.json", has_engine=False)
    assert "curl" not in shown
    assert "nothing answers before a pool has a replica" in shown
