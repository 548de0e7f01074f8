"""Invoices that should be out and are not: what the worker's last run could not close or finalise, kept in Redis for
all who tell of it. After a loss of Redis it is there again within the hour.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import redis

from billing.invoicing.closing import Closed
from billing.invoicing.finalising import Finalised, grace_time
from billing.models import BillingAccount, Invoice
from headrace_core import store_keys

KEY = store_keys.INVOICES_OVERDUE
NOT_CLOSED = "not_closed"
_KEPT = 200  # of each kind: what is told, and shown, of them
_SLACK = timedelta(hours=2)  # two runs of the worker


class Waits(msgspec.Struct, frozen=True):
    """One document that is not out. codes: of its reasons (blockers.py), or `not_closed`. why: what to do about it."""

    tenant: str
    period: str
    codes: list[str]
    why: str


def note(client: "redis.Redis", closed: Closed, finalised: Finalised) -> None:
    """Keep what a run left. Tenants that nobody invoices have drafts for good: those are not overdue."""
    waits = [Waits(tenant, "", [NOT_CLOSED], why[:500]) for tenant, why in closed.failed[:_KEPT]]
    for waiting in _invoiced(finalised)[:_KEPT]:
        invoice = waiting.invoice
        waits.append(Waits(invoice.tenant_id, invoice.label, list(waiting.codes), waiting.why[:500]))
    client.set(KEY, msgspec.json.encode(waits))


def _invoiced(finalised: Finalised) -> list[Any]:
    tenants = {waiting.invoice.tenant_id for waiting in finalised.waiting}
    accounts = BillingAccount.objects.filter(tenant__in=tenants).exclude(legal_entity=None)
    invoiced = set(accounts.values_list("tenant_id", flat=True))
    return [waiting for waiting in finalised.waiting if waiting.invoice.tenant_id in invoiced]


def decode(noted: bytes | None) -> list[Waits] | None:
    """What the last run noted under KEY; None where none has, or in another version's words."""
    try:
        return None if noted is None else msgspec.json.decode(noted, type=list[Waits])
    except msgspec.MsgspecError:
        return None


def by_code(waits: Iterable[Waits]) -> Counter[str]:
    """How many wait for each reason; one that waits for two counts for both."""
    return Counter(code for each in waits for code in each.codes)


def count_overdue(now: datetime) -> int:
    """Drafts, of tenants that are invoiced, that should be finalised for hours."""
    drafts = Invoice.objects.filter(status=Invoice.Status.DRAFT, period_end__lte=now - grace_time() - _SLACK)
    return drafts.filter(tenant__billing_account__legal_entity__isnull=False).count()
