"""Celery's shells. Each may run twice, at once, and on any machine."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import redis
from celery import shared_task
from django.conf import settings
from django.db import InterfaceError, OperationalError

from billing import drain, partitions, retention, settlement
from billing.budgets import alerts, counters, delivery
from billing.invoicing import overdue
from billing.invoicing.closing import close_all
from billing.invoicing.finalising import finalise_all
from billing.ledger_check import nightly
from billing.rejections import draining, expiry
from headrace_core import audit

log = logging.getLogger("headrace.ledger")


@contextmanager
def _stores(words: str, *, seconds: int = 10) -> Iterator["redis.Redis"]:
    """Redis, which is waited for so many seconds. That it or the database is away ends the run with `words` in the log:
    the next run takes it up."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=seconds) as client:
            yield client
    except (OperationalError, InterfaceError, redis.RedisError) as error:
        log.warning("%s: %s", words, str(error).partition("\n")[0])


@shared_task(name="billing.drain")  # type: ignore[untyped-decorator]
def drain_usage() -> None:
    with _stores("usage waits in the stream") as client:
        # Not longer: the same few threads make the budgets' counters.
        drain.drain_all(client, seconds=2)


@shared_task(name="billing.reap")  # type: ignore[untyped-decorator]
def reap_holds() -> None:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=10) as client:
            settlement.reap_expired(client, lease_seconds=settings.LEASE_SECONDS)
    except redis.RedisError as error:
        log.warning("nothing is reaped while Redis is away: %s", error)


@shared_task(name="billing.rejections")  # type: ignore[untyped-decorator]
def carry_refusals() -> None:
    with _stores("counts of refusals wait") as client:
        draining.carry(client)


@shared_task(name="billing.partitions")  # type: ignore[untyped-decorator]
def make_partitions() -> None:
    partitions.ensure_months()


@shared_task(name="billing.retention")  # type: ignore[untyped-decorator]
def drop_old_records() -> None:
    try:
        retention.drop_old(settings.RETENTION_MONTHS)
        expiry.forget_old(settings.RETENTION_MONTHS)
    except OperationalError as error:  # the table is busy: the next run drops it
        log.warning("no records are dropped: %s", str(error).splitlines()[0])


@shared_task(name="billing.check_ledger")  # type: ignore[untyped-decorator]
def check_ledger() -> None:
    with _stores("the books could not be compared", seconds=30) as client:
        nightly.check(client, spool=settings.HOME / "spool")


@shared_task(name="billing.keep_budgets")  # type: ignore[untyped-decorator]
def keep_budgets() -> None:
    with _stores("budgets' counters wait") as client:
        # As long as leases are renewed each (headrace/gateway/process/heartbeat.py), and a moment for it.
        counters.keep(client, patience=settings.LEASE_SECONDS / 3 + 1)


@shared_task(name="billing.rebuild_budgets")  # type: ignore[untyped-decorator]
def rebuild_budgets() -> None:
    with _stores("budgets' counters are not compared with the ledger") as client:
        counters.rebuild_all(client)


@shared_task(name="billing.invoices")  # type: ignore[untyped-decorator]
def make_invoices(who: str = "", origin: str = "") -> None:
    """Drafts for the periods that are over; invoices of the drafts whose grace time is. The audit trail has them by
    `who` asked for them, from `origin`; by the worker, if nobody did."""
    with audit.naming(who=who, origin=origin):
        closed, finalised = close_all(), finalise_all()
    for waiting in finalised.waiting:
        log.warning("%s waits: %s", waiting.invoice, waiting.why)
    with _stores("nobody is told which invoices wait") as client:
        overdue.note(client, closed, finalised)


@shared_task(name="billing.alerts")  # type: ignore[untyped-decorator]
def find_alerts() -> None:
    with _stores("alerts wait") as client:
        alerts.find_alerts(client)
        delivery.deliver_due()
