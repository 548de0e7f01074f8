"""What keeps a draft from being finalised: each with what an operator can do about it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import redis
from django.conf import settings

from billing.invoicing.drafting import Draft
from billing.invoicing.errors import Reason
from billing.models import BillingAccount, DeadLetter, Invoice
from billing.usage import admitted_ms
from tenants.meters import holds

DEAD_LETTERS = "dead_letters"
MOST_WAITING = 20_000  # entries of the stream that are looked into; more than this is a backlog, and waits


class _Whose(msgspec.Struct):
    """What is read of an event to know whose it is."""

    tenant: str = ""
    request_id: str = ""


def before_drafting(
    invoice: Invoice, *, now: datetime, grace: timedelta, client: "redis.Redis | None"
) -> Iterator[Reason]:
    """Reasons that are to be looked for before the ledger is summed: what is drained after that is late, not lost."""
    if now < invoice.period_end + grace:
        yield Reason(
            "grace", f"the grace time ends at {(invoice.period_end + grace).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        )
    account = BillingAccount.objects.filter(tenant=invoice.tenant_id).first()
    if account is None or account.legal_entity_id is None:
        yield Reason("legal_entity", f"tenant {invoice.tenant_id} has no legal entity that invoices it")
    earlier = Invoice.objects.of(invoice.tenant_id).filter(status="draft", period_start__lt=invoice.period_start)
    if first := earlier.order_by("period_start").first():
        yield Reason("earlier_draft", f"the draft for {first.label} comes before it")
    yield from _waiting(invoice, client)
    letters = sum(_is_of(invoice, letter.event.encode()) for letter in DeadLetter.objects.filter(replayed_at=None))
    if letters:
        yield Reason(DEAD_LETTERS, f"{letters} dead letters of the period wait to be replayed")


def of_draft(draft: Draft) -> Iterator[Reason]:
    """Reasons in the figures themselves."""
    for period, use in draft.uses.items():
        if use.unpriced_tokens:
            yield Reason(
                "unpriced",
                f"{use.unpriced_tokens:,} tokens of {period} have no price: set one, then `ledger price-unpriced`",
            )
        for version in use.unknown_prices:
            yield Reason("unknown_price", f"records of {period} name the price {version}, which is not there")
        for what in use.costs_differ:
            yield Reason("cost_differs", f"{what} in {period}: the hours' cost is not what their tokens cost")


def _waiting(invoice: Invoice, client: "redis.Redis | None") -> Iterator[Reason]:
    """Requests of the period that still run, and usage that is settled and not drained."""
    try:
        if client is not None:
            yield from _in_redis(invoice, client)
            return
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=10) as own:
            yield from _in_redis(invoice, own)
    except redis.RedisError as error:
        yield Reason("redis", f"Redis does not say what still waits: {error}")


def _in_redis(invoice: Invoice, client: "redis.Redis") -> Iterator[Reason]:
    entries: list[Any] = client.xrange(holds.USAGE, count=MOST_WAITING + 1) or []
    if len(entries) > MOST_WAITING:
        yield Reason("undrained", f"more than {MOST_WAITING:,} usage events wait to be drained")
        return
    if waiting := sum(_is_of(invoice, fields.get(b"e", b"")) for _, fields in entries):
        yield Reason("undrained", f"{waiting} usage events of the period wait to be drained")
    running = [hold for hold in holds.living(client) if hold["tenant"] == invoice.tenant_id]
    if count := sum(_is_within(invoice, str(hold["request_id"])) for hold in running):
        yield Reason("running", f"{count} requests of the period still run")


def _is_of(invoice: Invoice, event: bytes) -> bool:
    """Whether a usage event is the tenant's, of the period or of an unknown time."""
    try:
        whose = msgspec.json.decode(event, type=_Whose)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # nobody can say whose it was
    return whose.tenant == invoice.tenant_id and _is_within(invoice, whose.request_id, unknown=True)


def _is_within(invoice: Invoice, request_id: str, *, unknown: bool = False) -> bool:
    try:
        moment = datetime.fromtimestamp(admitted_ms(UUID(request_id)) / 1000, UTC)
    except (ValueError, OverflowError):
        return unknown
    return invoice.period_start <= moment < invoice.period_end
