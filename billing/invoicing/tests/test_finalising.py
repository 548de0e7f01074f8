"""A draft becomes an invoice once, after its grace time, when nothing of its period is missing."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.utils import timezone

from billing.drain import drain_all
from billing.exports.formats import export
from billing.invoicing.content import hash_of, stated_by
from billing.invoicing.errors import CannotFinalise, NotPossible
from billing.invoicing.finalising import finalise_all, finalise_invoice
from billing.invoicing.tests.making import close, event_of, finalise, make_customer, make_price, use, utc
from billing.models import BillingAccount, DeadLetter, Invoice, LegalEntity, Price
from billing.tests.stream import append, connect
from tenants.models import AuditEntry, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(acme: Tenant, price: Price) -> Invoice:
    use("2026-03-05 12:00", price, tokens=(1_000_000, 0, 0))
    (draft,) = close(utc("2026-04-02"))
    return draft


def reasons(draft: Invoice, **options: Any) -> list[str]:
    with pytest.raises(CannotFinalise) as refused:
        finalise(draft, **options)
    assert Invoice.objects.get(pk=draft.pk).is_draft
    return [reason.code for reason in refused.value.reasons]


def test_it_takes_a_number_copies_and_hashes(draft: Invoice) -> None:
    BillingAccount.objects.update(name="Acme Holding", reference="PO 77", tax_rate="19")
    invoice = Invoice.objects.get(pk=finalise(draft, utc("2026-04-05 12:00")).pk)
    content = stated_by(invoice)
    assert (invoice.number, invoice.status, LegalEntity.objects.get().next_number) == ("NORTH-000001", "finalised", 2)
    assert (content["number"], content["customer"]["name"], content["customer"]["reference"]) == (
        "NORTH-000001",
        "Acme Holding",
        "PO 77",
    )
    assert (content["net"], content["tax"], content["total"]) == ("0.50", "0.10", "0.60")
    assert (content["issued_at"], content["due_on"]) == ("2026-04-05T14:00:00+02:00", "2026-05-05")
    assert (content["period_start"], content["period_end"]) == (
        "2026-03-01T00:00:00+01:00",
        "2026-04-01T00:00:00+02:00",
    )
    assert invoice.content_hash == hash_of(content)
    BillingAccount.objects.update(name="Renamed")
    assert stated_by(Invoice.objects.get())["customer"]["name"] == "Acme Holding"


def test_it_waits_for_the_grace_time(draft: Invoice) -> None:
    early = draft.period_end + timedelta(hours=71, minutes=59)
    assert finalise_all(now=early).invoices == []
    with pytest.raises(CannotFinalise, match="the grace time ends at 2026-04-03 22:00 UTC"):
        finalise_invoice(draft.pk, now=early)
    done = finalise_all(now=draft.period_end + timedelta(hours=72))
    assert [invoice.number for invoice in done.invoices] == ["NORTH-000001"]
    assert finalise_all(now=utc("2027-01-01")).invoices == []


def test_it_computes_the_draft_a_last_time(draft: Invoice, price: Price) -> None:
    use("2026-03-31 20:00", price, tokens=(1_000_000, 0, 0))
    assert finalise(draft).total == Decimal("1.00")


def test_it_waits_for_usage_without_a_price(draft: Invoice) -> None:
    use("2026-03-05 12:00")
    assert reasons(draft) == ["unpriced"]


def test_it_waits_for_a_price_that_is_not_there(acme: Tenant) -> None:
    use("2026-03-05 12:00", make_price(), tokens=(1_000_000, 0, 0))
    (draft,) = close(utc("2026-04-02"))
    use(
        "2026-03-05 12:00",
        Price(version="ghost@1", model="ghost", input=Decimal(1), cached_input=Decimal(1), output=Decimal(1)),
    )
    assert reasons(draft) == ["unknown_price"]


def test_a_draft_says_what_it_said_although_a_price_was_taken_back(acme: Tenant) -> None:
    """A gateway whose clock is ahead uses one that, by the database's, is still to come and may be deleted."""
    early = make_price("soon", effective_from=timezone.now() + timedelta(days=1))
    use("2026-03-05 12:00", early, tokens=(1_000_000, 0, 0))
    (draft,) = close(utc("2026-04-02"))
    early.delete()
    [line] = stated_by(draft)["lines"]
    assert (line["unit_price"], line["list_unit_price"], line["amount"]) == ("0.5", "0.5", "0.50")
    assert b"".join(export(draft, "focus"))
    assert reasons(draft) == ["unknown_price"]


def test_it_waits_for_a_seller(draft: Invoice) -> None:
    BillingAccount.objects.update(legal_entity=None)
    assert reasons(draft) == ["legal_entity"]
    BillingAccount.objects.all().delete()
    assert reasons(draft) == ["legal_entity"]


def test_it_waits_for_the_draft_before_it(draft: Invoice, price: Price) -> None:
    use("2026-02-05 12:00", price)
    february, march = close(utc("2026-04-02"))
    assert reasons(march) == ["earlier_draft"]
    finalise(february)
    assert finalise(march).number == "NORTH-000002"


def test_it_waits_for_usage_of_the_period_that_is_not_drained(draft: Invoice, price: Price) -> None:
    with connect() as client:
        append(client, event_of(utc("2026-03-31 20:00"), price))
        append(client, event_of(utc("2026-04-01 20:00"), price), event_of(utc("2026-03-09"), price, tenant="globex"))
        assert reasons(draft, client=client) == ["undrained"]
        drain_all(client)
        assert finalise(draft, client=client).lines.get(token_class="output").quantity == 50


def test_it_waits_for_dead_letters_of_the_period_unless_they_are_accepted(draft: Invoice, price: Price) -> None:
    with connect() as client:
        append(client, event_of(utc("2026-03-31 20:00"), price) | {"input_tokens": -1}, b"nobody's")
        append(client, event_of(utc("2026-05-31 20:00"), price) | {"input_tokens": -1})
        drain_all(client)
    assert DeadLetter.objects.count() == 3
    assert reasons(draft) == ["dead_letters"]
    assert finalise(draft, accept=["dead_letters", "grace"]).is_finalised


def test_it_waits_while_redis_is_away(draft: Invoice) -> None:
    with redis.Redis(port=1) as nobody:
        assert reasons(draft, client=nobody) == ["redis"]


def test_it_tells_every_reason_at_once(draft: Invoice) -> None:
    use("2026-03-05 12:00")
    BillingAccount.objects.update(legal_entity=None)
    with pytest.raises(CannotFinalise) as refused:
        finalise_invoice(draft.pk, now=draft.period_end)
    assert [reason.code for reason in refused.value.reasons] == ["grace", "legal_entity", "unpriced"]


def test_it_finalises_once(draft: Invoice) -> None:
    finalise(draft)
    with pytest.raises(NotPossible, match="NORTH-000001 is finalised"):
        finalise(draft)


def test_it_finalises_the_others_when_one_waits(draft: Invoice, price: Price) -> None:
    make_customer("globex", legal_entity=None)
    make_customer("hooli")
    for slug in ("globex", "hooli"):
        use("2026-03-05 12:00", price, tenant=slug)
    close(utc("2026-04-02"))
    done = finalise_all(now=utc("2026-04-10"))
    assert [invoice.tenant_id for invoice in done.invoices] == ["acme", "hooli"]
    assert [(waiting.invoice.tenant_id, waiting.codes, waiting.why) for waiting in done.waiting] == [
        ("globex", ("legal_entity",), "tenant globex has no legal entity that invoices it")
    ]


def test_it_is_in_the_audit_trail_without_its_content(draft: Invoice) -> None:
    finalise(draft)
    entry = AuditEntry.objects.filter(subject=f"billing_invoice {draft.pk}", action="changed").latest("id")
    assert entry.after
    assert (entry.tenant, entry.after["status"], entry.after["number"]) == ("acme", "finalised", "NORTH-000001")
    assert "lines" not in str(entry.after)
