"""Which price counts: the nearest to the request, of those the latest that was effective when it was admitted."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import InternalError
from django.utils import timezone

from billing.models import Price
from billing.price_book import SELECT, PriceBook

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def price(minutes: float = -60, **fields: Any) -> Price:
    """A price of `demo` in USD, effective so many minutes from now."""
    rates = {name: Decimal(1) for name in ("input", "cached_input", "output")}
    return Price.objects.create(
        **{"model": "demo", "effective_from": NOW + timedelta(minutes=minutes)} | rates | fields
    )


def book() -> PriceBook:
    with connection.cursor() as cursor:
        cursor.execute(SELECT)
        return PriceBook(cursor.fetchall())


def found(at: datetime = NOW, **asked: str) -> str | None:
    request = {"model": "demo", "target": "h100", "tenant": "acme", "currency": "USD"} | asked
    quote = book().find(**request, at_ms=int(at.timestamp() * 1000))
    return quote.version if quote else None


def test_it_is_versioned_by_the_model() -> None:
    assert [price(-3).version, price(-2).version, price(-1, model="other").version] == ["demo@1", "demo@2", "other@1"]


def test_the_nearest_to_the_request_counts() -> None:
    price()
    assert found() == "demo@1"
    price(target="h100")
    assert found() == "demo@2"
    price(tenant="acme")
    assert found() == "demo@3"
    price(tenant="acme", target="h100")
    assert found() == "demo@4"
    assert found(tenant="globex") == "demo@2"
    assert found(tenant="globex", target="openai") == "demo@1"
    assert found(model="other") is None


def test_the_moment_of_admission_decides_to_the_millisecond() -> None:
    price(-60)
    later = price(10)
    assert found(later.effective_from - timedelta(milliseconds=1)) == "demo@1"
    assert found(later.effective_from + timedelta(milliseconds=1)) == "demo@2"
    assert found(NOW - timedelta(minutes=61)) is None


def test_a_price_of_another_currency_is_none() -> None:
    price(currency="EUR")
    assert found() is None
    assert found(currency="EUR") == "demo@1"


def test_a_price_in_force_is_never_changed() -> None:
    current, coming = price(-1), price(60)
    for statement in ("UPDATE billing_price SET input = 2 WHERE id = %s", "DELETE FROM billing_price WHERE id = %s"):
        with pytest.raises((IntegrityError, InternalError)), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, [current.pk])
    coming.input = Decimal(2)
    coming.save()
    coming.delete()
    assert Price.objects.get().input == 1


def test_a_negative_or_endless_price_is_refused() -> None:
    for rate in ("-1", "NaN", "1000000001"):
        with pytest.raises(Exception), transaction.atomic(), connection.cursor() as cursor:  # noqa: B017, PT011
            cursor.execute(
                "INSERT INTO billing_price (version, model, target, tenant, currency, input, cached_input, output,"
                " effective_from, created_at) VALUES ('d@9', 'd', '', '', 'USD', %s, 0, 0, now(), now())",
                [rate],
            )
