"""Finalising: after the grace time a draft is computed a last time, takes the next number, and is copied and hashed."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from billing.exports.pdf import unprintable
from billing.invoicing import blockers, drafting
from billing.invoicing.content import content_of, hash_of, stated_by
from billing.invoicing.errors import CannotFinalise, InvoiceError, NotPossible
from billing.invoicing.locking import lock_invoices
from billing.models import BillingAccount, Invoice, LateUsage, LegalEntity, UsageRecord
from billing.periods import calendar_of

log = logging.getLogger("headrace.invoices")


class Waiting(NamedTuple):
    """A draft that could not be finalised: the codes of what it waits for, and all of it in words."""

    invoice: Invoice
    codes: tuple[str, ...]
    why: str


@dataclass
class Finalised:
    """What a run left: invoices with their new numbers, and drafts that wait."""

    invoices: list[Invoice] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)


def finalise_all(*, now: datetime | None = None, client: "redis.Redis | None" = None) -> Finalised:
    """Finalise every draft whose grace time is over, oldest first. One that cannot be stops no other tenant's."""
    now = now or timezone.now()
    done = Finalised()
    due = Invoice.objects.filter(status=Invoice.Status.DRAFT, period_end__lte=now - grace_time())
    for invoice in due.order_by("period_start", "tenant", "currency"):
        try:
            done.invoices.append(finalise_invoice(invoice.pk, now=now, client=client))
            if warning := boxes_in(done.invoices[-1]):
                log.warning("%s", warning)
        except CannotFinalise as error:
            codes = tuple(dict.fromkeys(reason.code for reason in error.reasons))
            done.waiting.append(Waiting(invoice, codes, str(error)))
        except InvoiceError as error:
            done.waiting.append(Waiting(invoice, ("not_possible",), str(error)))
        except Exception as error:
            log.exception("%s is not finalised", invoice)
            done.waiting.append(Waiting(invoice, ("failed",), f"{type(error).__name__}: {error}"))
    return done


def grace_time() -> timedelta:
    return timedelta(hours=settings.INVOICE_GRACE_HOURS)


@transaction.atomic
def finalise_invoice(
    pk: UUID,
    *,
    now: datetime | None = None,
    grace: timedelta | None = None,
    accept: Collection[str] = (),
    client: "redis.Redis | None" = None,
) -> Invoice:
    """Make a draft an invoice, all of it or nothing; its number is the next of its legal entity's series.

    `accept` names reasons an operator overrides; only dead letters can be. Raises CannotFinalise with every reason, and
    NotPossible for anything but a draft.
    """
    now = now or timezone.now()
    tenant_slug = Invoice.objects.values_list("tenant_id", flat=True).get(pk=pk)
    lock_invoices(tenant_slug)
    invoice = Invoice.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=pk)
    if not invoice.is_draft:
        raise NotPossible(f"{invoice} is {invoice.status}")
    reasons = list(
        blockers.before_drafting(invoice, now=now, grace=grace_time() if grace is None else grace, client=client)
    )
    calendar = calendar_of(tenant_slug)
    draft = drafting.compute(invoice.tenant, calendar, calendar.period(invoice.period), invoice.currency)
    reasons += blockers.of_draft(draft)
    reasons = [reason for reason in reasons if not (reason.code == blockers.DEAD_LETTERS and reason.code in accept)]
    if reasons:
        raise CannotFinalise(reasons)
    if not draft.lines:
        raise NotPossible(f"{invoice} states nothing any more: close the period again")
    drafting.write(invoice, draft, now)
    claimed = Q()
    for period in draft.uses:
        claimed |= Q(admitted_at__gte=period.start, admitted_at__lt=period.end)
    of_currency = UsageRecord.rows.filter(
        request_id=OuterRef("request_id"),
        part=OuterRef("part"),
        admitted_at=OuterRef("admitted_at"),
        currency=invoice.currency,
    )
    LateUsage.objects.filter(claimed, Exists(of_currency), tenant=tenant_slug, invoice=None).update(invoice=invoice)
    account = BillingAccount.objects.select_related("legal_entity").get(tenant=tenant_slug)
    number_and_copy(invoice, account, now)
    return invoice


def boxes_in(invoice: Invoice) -> str:
    """What to tell whoever finalised `invoice` where its PDF has boxes for characters; "" where it has none."""
    characters = unprintable(stated_by(invoice))
    if not characters:
        return ""
    return (
        f"The PDF of {invoice} shows boxes for {' '.join(characters[:20])}: no font has them. "
        "Name a folder of fonts that do in HEADRACE_INVOICE_FONTS."
    )


def number_and_copy(invoice: Invoice, account: BillingAccount, now: datetime) -> None:
    """The last step of an invoice and of a credit note: number, copy, hash.

    The entity's row is locked to the commit, so a number is taken by what is committed or by nobody.
    """
    entity = LegalEntity.objects.select_for_update().get(pk=account.legal_entity_id)
    account.legal_entity = invoice.legal_entity = entity
    invoice.sequence, invoice.number = entity.next_number, entity.number(entity.next_number)
    invoice.status, invoice.finalised_at = Invoice.Status.FINALISED, now
    invoice.content = content_of(invoice, list(invoice.lines.order_by("position")), account)
    invoice.content_hash = hash_of(invoice.content)
    invoice.save(force_update=True)
    LegalEntity.objects.filter(pk=entity.pk).update(next_number=entity.next_number + 1)
