"""The cost page: its table and its chart, gaps and missing rates said in words."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client

from billing.cost.tests.world import DAY, HOUR, pool, up, used

pytestmark = pytest.mark.django_db

SPAN = "from=2026-03-02&to=2026-03-02"


def page(client: Client, query: str) -> str:
    client.force_login(User.objects.create_superuser("olga", "olga@example.com", "a long password"))
    answer = client.get(f"/admin/cost/?{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_draws_what_it_tells_and_breaks_the_line_at_a_gap(client: Client) -> None:
    pool()
    for number in (0, 1, 3, 4):
        up(DAY + number * HOUR)
        used(DAY + number * HOUR, 9_000_000, cost="5")
    text = page(client, f"by=hour&{SPAN}")
    assert text.count("<polyline") == 2
    assert "0.2778" in text
    assert "Not sampled: 20.0 h" in text
    assert re.search(r"Margin</dt><dd>10.00", text)


def test_it_says_which_exchange_rate_is_missing(client: Client) -> None:
    pool()
    up(DAY)
    used(DAY, 1_000_000, cost=str(Decimal(3)), currency="EUR")
    assert "No exchange rate: EUR/USD" in page(client, SPAN)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("by=week", "by is hour, day or month"),
        ("zone=Mars", "not a time zone"),
        ("from=soon", "no day"),
        ("from=2026-03-02&to=2026-03-01", "before the last"),
        ("by=hour&from=2020-01-01&to=2026-01-01", "at most 31 days"),
        ("input=a&output=b", "Prices are numbers"),
        ("currency=XXX", "not a currency"),
        ("", "Nothing was sampled"),
    ],
)
def test_it_says_what_is_wrong_with_a_question(client: Client, query: str, words: str) -> None:
    assert words in page(client, query)
