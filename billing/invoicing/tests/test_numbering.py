"""Numbers are unique and without gaps, whatever fails."""

import random

import pytest
from django.db import transaction

from billing.invoicing.closing import close_all
from billing.invoicing.crediting import credit_invoice
from billing.invoicing.errors import NotPossible
from billing.invoicing.tests.making import (
    at_once,
    close,
    event_of,
    finalise,
    make_customer,
    make_price,
    make_seller,
    use,
    utc,
    write,
)
from billing.invoicing.voiding import void_invoice
from billing.models import Invoice, LegalEntity

pytestmark = pytest.mark.django_db(transaction=True)


class Broken(Exception):
    pass


def test_it_numbers_200_invoices_in_8_workers_without_gaps_though_some_fail() -> None:
    sellers = [make_seller("north"), make_seller("south", next_number=500)]
    price = make_price()
    names = [f"t{number:03d}" for number in range(200)]
    for place, name in enumerate(names):
        make_customer(name, sellers[place % 4 == 0], created_at=utc("2026-03-01"))
    write(*(event_of(utc("2026-03-05 12:00"), price, tenant=name) for name in names))
    assert len(close_all(now=utc("2026-04-02"), tenants=names).drafts) == 200
    drafts = list(Invoice.objects.values_list("pk", flat=True))

    def work(worker: int) -> None:
        """Every draft, in an order of its own; some attempts fail after the number was taken."""
        chance = random.Random(worker)
        for pk in chance.sample(drafts, len(drafts)):
            try:
                with transaction.atomic():
                    finalise(Invoice(pk=pk))
                    if chance.random() < 0.3:
                        raise Broken
            except (Broken, NotPossible):
                continue

    at_once(8, work)
    work(9)
    while left := Invoice.objects.filter(status="draft").first():
        finalise(left)
    for seller, first, count in (("north", 1, 150), ("south", 500, 50)):
        series = Invoice.objects.filter(legal_entity_id=seller).order_by("sequence").values_list("sequence", flat=True)
        assert list(series) == list(range(first, first + count))
        assert LegalEntity.objects.get(pk=seller).next_number == first + count
    assert Invoice.objects.values("number").distinct().count() == 200


def test_it_uses_no_number_again_after_voiding_and_crediting() -> None:
    make_seller()
    price = make_price()
    make_customer()
    use("2026-03-05 12:00", price, tokens=(10_000_000, 0, 0))
    first = finalise(close(utc("2026-04-02"))[0])
    credit_invoice(first.pk, reason="outage", net=first.net)
    note = Invoice.objects.get(kind="credit_note")
    void_invoice(note.pk, reason="wrong")
    void_invoice(first.pk, reason="wrong customer")
    again = finalise(close(utc("2026-04-02"))[0])
    assert [first.number, note.number, again.number] == ["NORTH-000001", "NORTH-000002", "NORTH-000003"]
    assert again.total == first.total
