"""Sending notices: e-mails and signed webhooks, tried again with growing pauses, each try on record.

A webhook is a POST of JSON with the header `x-headrace-signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256,
under the endpoint's secret, of the seconds, a dot and the body: whoever takes it compares, refuses old seconds, and
takes each `id` once. Any 2xx is an answer that it was taken; redirects are not followed. Where one may go outgoing.py
says. A notice without an alert is a test that a tenant asked for: it is tried once.

Many are tried at a time (under_way.py), so that no tenant's slow or dead endpoint keeps another's notices waiting.
Where an endpoint took nothing, what else waits for it waits for its pause too. What waits for a paused endpoint goes
once it is told again.
"""

import hmac
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from smtplib import SMTPException
from typing import Any

import httpcore
from django.conf import settings
from django.core.mail import send_mail
from django.db import connection, transaction
from django.utils import timezone

from billing.amounts import plain
from billing.budgets import outgoing
from billing.budgets.delivery_slots import UNDER_WAY, Due, find_due
from billing.models import BudgetAlert, Delivery, Notice
from engines.name_lookup import look_up
from headrace_core import sealing

log = logging.getLogger("headrace.budgets")
SIGNATURE = "x-headrace-signature"
FIRST_PAUSE = timedelta(seconds=10)
GROWTH = 4
MOST_ATTEMPTS = 8  # the last one about fifteen hours after the first
RUN_SECONDS = 10.0  # beyond it no further try is begun
LONGEST_WAIT = timedelta(minutes=10)  # for a notice because of another one of its endpoint
_BY_SMTP = "django.core.mail.backends.smtp.EmailBackend"
_LOOK_SECONDS = 0.25  # at most between two looks for what has come to be due
# Longer than any try takes: a worker that dies while trying leaves its notice to the next.
_CLAIM = timedelta(seconds=60)
_LOCK = "hashtext('headrace.delivery')"


class NotTaken(Exception):
    """The place did not take the notice; the text says why."""


def deliver_due(*, now: datetime | None = None, most: int = 1000) -> int:
    """Try notices whose time has come; how many were tried: none where another run is at it.

    Tries that last longer than RUN_SECONDS end after it returned, and are saved then.
    """
    tried, until = 0, time.monotonic() + RUN_SECONDS
    with _alone() as is_alone:
        due: list[Due] = []
        while is_alone and tried < most and (left := until - time.monotonic()) > 0:
            changes = UNDER_WAY.changes
            due = due or find_due(now or timezone.now())
            rest: list[Due] = []
            for one in due:
                if tried < most and UNDER_WAY.take(one):
                    tried += _begin(one, now)
                else:
                    rest.append(one)
            if not due and UNDER_WAY.is_idle:
                break
            # What could not be begun is looked for anew once a try has ended: it may have failed for all of them.
            due = [] if len(rest) == len(due) else rest
            if not due or rest:
                UNDER_WAY.wait_changed(changes, min(left, _LOOK_SECONDS))
        UNDER_WAY.wait_idle(until - time.monotonic())
    return tried


def _begin(due: Due, now: datetime | None) -> int:
    """Have a thread try the notice of `due`, which was taken; 0 where it is not due any more."""
    notice = _claim(due.notice, now or timezone.now())
    if notice is None:
        UNDER_WAY.release(due)
        return 0
    UNDER_WAY.run(due, lambda: _try(notice, now))
    return 1


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_LOCK})")
        [is_alone] = cursor.fetchone() or [False]
    try:
        yield is_alone
    finally:
        if is_alone and connection.connection is not None and not connection.connection.closed:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT pg_advisory_unlock({_LOCK})")


def _claim(notice_id: int, now: datetime) -> Notice | None:
    """The notice, for this run alone, with all that a try reads; None where it is no longer due."""
    with transaction.atomic():
        due = Notice.objects.filter(pk=notice_id, state=Delivery.WAITING, next_at__lte=now)
        due = due.select_related("endpoint", "alert__budget", "alert__tenant")
        notice = due.select_for_update(skip_locked=True, of=("self",)).first()
        if notice is None:
            return None
        notice.attempts += 1
        notice.next_at = now + _CLAIM
        notice.save(update_fields=["attempts", "next_at"])
        return notice


def _try(notice: Notice, at: datetime | None) -> None:
    """Send, then save what came of it, on a database connection of the thread's own."""
    try:
        notice.answer = _email(notice) if notice.email else _post(notice)
        notice.state = Delivery.DELIVERED
    except NotTaken as error:
        _note_failure(notice, str(error))
    except Exception as error:  # the boundary of a thread: a notice that cannot be sent is not tried for ever
        log.exception("notice %d cannot be sent", notice.pk)
        _note_failure(notice, f"not sent: {type(error).__name__}")
    now = at or timezone.now()
    notice.last_at = now
    notice.next_at = now + FIRST_PAUSE * GROWTH ** (notice.attempts - 1)
    try:
        _save(notice, now)
    finally:
        connection.close()


def _note_failure(notice: Notice, why: str) -> None:
    notice.answer = why[:500]
    most = MOST_ATTEMPTS if notice.alert_id else 1
    notice.state = Delivery.WAITING if notice.attempts < most else Delivery.FAILED


def _save(notice: Notice, now: datetime) -> None:
    notice.save(update_fields=["answer", "state", "last_at", "next_at"])
    if notice.endpoint_id and notice.state != Delivery.DELIVERED:
        until = min(notice.next_at, now + LONGEST_WAIT)
        others = Notice.objects.filter(endpoint=notice.endpoint_id, state=Delivery.WAITING, alert__isnull=False)
        others.exclude(pk=notice.pk).filter(next_at__lt=until).update(next_at=until)


def _email(notice: Notice) -> str:
    alert = notice.alert
    assert alert is not None
    currency = alert.tenant.currency
    text = (
        f"{plain(alert.spent)} {currency} of the {plain(alert.amount)} {currency} of the budget {alert.budget.name}"
        f" of {alert.tenant.name} are spent, which is {alert.threshold}% or more.\n"
        + ("It is a hard budget: what might pass it is refused.\n" if alert.budget.hard else "")
    )
    try:
        if (
            settings.EMAIL_BACKEND == _BY_SMTP
        ):  # found in time, or not written to: the mail library would wait for as long as it takes
            look_up(settings.EMAIL_HOST, settings.EMAIL_PORT).result(outgoing.SECONDS)
        send_mail(f"Budget {alert.budget.name}: {alert.threshold}% spent", text, None, [notice.email])
    except (SMTPException, OSError) as error:
        raise NotTaken(str(error) or type(error).__name__) from error
    return "sent"


def _post(notice: Notice) -> str:
    assert notice.endpoint is not None
    try:
        secret = sealing.open(notice.endpoint.secret)
    except sealing.Unreadable as error:
        raise NotTaken(str(error)) from error
    body = json.dumps(payload(notice.alert) if notice.alert else trial_payload(notice)).encode()
    headers = [("content-type", "application/json"), (SIGNATURE, signature(secret, body, at=int(time.time())))]
    try:
        status = outgoing.post(notice.endpoint.url, body=body, headers=headers)
    except outgoing.NotAllowed as error:
        raise NotTaken(f"not sent: {error}") from error
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError, ValueError) as error:
        raise NotTaken(f"{type(error).__name__}: {error}") from error
    if not 200 <= status < 300:
        raise NotTaken(f"status {status}")
    return f"status {status}"


def signature(secret: str, body: bytes, *, at: int) -> str:
    """What the header says of `body`, signed at `at` (epoch seconds)."""
    return f"t={at},v1={hmac.new(secret.encode(), b'%d.' % at + body, sha256).hexdigest()}"


def trial_payload(notice: Notice) -> dict[str, Any]:
    return {"id": f"test-{notice.pk}", "type": "test", "at": timezone.now().isoformat(), "tenant": notice.tenant_id}


def payload(alert: BudgetAlert) -> dict[str, Any]:
    budget = alert.budget
    return {
        "id": f"alert-{alert.pk}",
        "type": "budget.threshold_reached",
        "at": alert.at.isoformat(),
        "tenant": alert.tenant_id,
        "budget": budget.name,
        "project": budget.project or None,
        "key": budget.key or None,
        "model": budget.model or None,
        "period": budget.period,
        "window_start": alert.window_start.isoformat(),
        "kind": "hard" if budget.hard else "soft",
        "threshold": alert.threshold,
        "spent": plain(alert.spent),
        "amount": plain(alert.amount),
        "currency": alert.tenant.currency,
    }
