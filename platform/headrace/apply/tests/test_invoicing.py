"""Who invoices and how each tenant is invoiced, from the document."""

from decimal import Decimal

import pytest

from billing.models import BillingAccount, LegalEntity
from headrace.apply import ApplyError, export_document
from headrace.apply.tests.documents import EVERYTHING, apply, changes

pytestmark = pytest.mark.django_db


def test_it_writes_legal_entities_and_billing_accounts() -> None:
    apply(EVERYTHING)
    north, account = LegalEntity.objects.get(), BillingAccount.objects.get()
    assert (north.address, north.number(north.next_number)) == ("Speicherstraße 7\n20457 Hamburg", "NC-000500")
    assert (account.tenant_id, account.legal_entity_id, account.address) == ("acme", "north", "Main Road 1\nPune")
    assert (account.tax_rate, account.discount_percent, account.minimum_fee) == (
        Decimal(18),
        Decimal("2.5"),
        Decimal(100),
    )


def test_it_leaves_the_series_where_it_is() -> None:
    apply(EVERYTHING)
    LegalEntity.objects.update(next_number=501)
    assert changes(EVERYTHING) == []
    assert apply(export_document()).changes == []
    assert LegalEntity.objects.get().next_number == 501


def test_it_changes_what_it_names() -> None:
    assert [text for text in changes(EVERYTHING) if "\n" in text] == []  # one line each, addresses too
    apply(EVERYTHING)
    assert changes("tenants: {acme: {billing: {tax_rate: 19}}, globex: {legal_entity: north}}") == [
        "~ billing of tenant acme: tax_rate 18.000 -> 19",
        "+ billing of tenant globex legal_entity_id=north",
    ]
    assert changes("tenants: {acme: {legal_entity: null}}") == [
        "~ billing of tenant acme: legal_entity_id north -> none"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tenants: {acme: {legal_entity: nort}}",
            'tenant acme: there is no legal entity "nort"; did you mean "north"?',
        ),
        ("tenants: {acme: {billing: {tax_rate: 101}}}", "billing of tenant acme: tax_rate"),
        ("tenants: {acme: {billing: {minimum_fee: -1}}}", "billing of tenant acme: minimum_fee"),
        ("legal_entities: {south: {invoice_prefix: NC-}}", "NC- is the prefix of north already"),
        ("legal_entities: {south: {invoice_prefix: 'a b'}}", "legal entity south: invoice_prefix"),
        ("legal_entities: {south: {email: nobody}}", "legal entity south: email"),
        ("legal_entities: {south: {address: 5}}", "wants text"),
    ],
)
def test_it_refuses_what_cannot_be(text: str, message: str) -> None:
    apply(EVERYTHING)
    with pytest.raises(ApplyError) as refused:
        apply(text)
    assert message in str(refused.value)
