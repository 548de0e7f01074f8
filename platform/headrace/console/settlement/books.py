"""What the ledger could not take, which invoices wait, and what the last comparison of the books found."""

from datetime import timedelta
from typing import Any

import redis
from django.urls import reverse
from django.utils import timezone

from billing.invoicing import overdue
from billing.models import DeadLetter, LedgerCheckRun
from headrace.console.settlement.section import BAD, GOOD, QUIET, SHOWN, TIGHT, Section, since
from headrace.quantities import count

_HOW = "It runs every night at 03:30 UTC; manage.py ledger check compares the books now."


def letters() -> Section:
    found, now = DeadLetter.objects.filter(replayed_at=None), timezone.now()
    oldest = found.order_by("at").first()
    if oldest is None:
        return Section("Dead letters", GOOD, "0 waiting", "The ledger took everything it was given.")
    return Section(
        "Dead letters",
        BAD,
        f"{count(found.count())} waiting",
        f"The oldest for {since(oldest.at, now)}: usage that the ledger could not take, and nobody is billed for.",
        "Mend what the reason names (a month without a partition, a currency that changed), then replay them: "
        "what the ledger still cannot take comes back.",
        ("Look at them and replay", f"{reverse('admin:billing_deadletter_changelist')}?replayed_at__isempty=1"),
        ("Arrived (UTC)", "Reason", "Age"),
        frozenset({"Age"}),
        [(f"{one.at:%Y-%m-%d %H:%M:%S}", one.reason[:200], since(one.at, now)) for one in found[:SHOWN]],
    )


def invoices(client: "redis.Redis") -> Section:
    noted: Any = client.get(overdue.KEY)
    waits = overdue.decode(noted)
    link = ("Drafts", f"{reverse('admin:billing_invoice_changelist')}?status__exact=draft")
    if waits is None:
        return Section("Invoices", QUIET, "not made yet", "The worker closes and issues them every hour.", link=link)
    if not waits:
        return Section("Invoices", GOOD, "0 wait", "Every period that is over is closed, and its invoice is out.")
    return Section(
        "Invoices",
        BAD,
        f"{count(len(waits))} wait",
        "Periods that could not be closed, or whose grace time is over and that could not be invoiced.",
        "Do what each waits for: the worker tries again every hour, manage.py invoices close and finalise at once.",
        link,
        ("Tenant", "Period", "Waits for"),
        frozenset(),
        [(one.tenant, one.period, one.why[:200]) for one in waits[:SHOWN]],
    )


def check() -> Section:
    last, now = LedgerCheckRun.objects.first(), timezone.now()
    link = ("All checks", reverse("admin:billing_ledgercheckrun_changelist"))
    if last is None:
        return Section("Books", QUIET, "not compared yet", "The first check comes with the night.", _HOW, link)
    is_old = now - last.at > timedelta(days=2)
    todo = _HOW if is_old else ""
    if last.differences:
        todo = (
            "Something wrote to the books beside the drain, or a bug did: keep the check's page, and do not finalise"
            " the invoices it names."
        )
    return Section(
        "Books",
        BAD if last.differences else TIGHT if is_old else GOOD,
        f"{count(last.differences)} differ" if last.differences else "agree",
        f"Records, hours, budgets and invoices were compared {since(last.at, now)} ago, {last.at:%Y-%m-%d %H:%M} UTC.",
        todo,
        link,
        ("Check", "Compared", "Differ", "The first"),
        frozenset({"Compared", "Differ"}),
        [(one["name"], count(one["compared"]), count(one["total"]), str(one["differences"][0])[:200])
         for one in last.report["checks"] if one["total"]],
    )  # fmt: skip
