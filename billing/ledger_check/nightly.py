"""The check that runs by itself: kept for the Overview, logged where it finds a difference, and told in Redis to all
who answer for metrics. After a loss of Redis it is there again the next night.
"""

import logging
from datetime import timedelta
from pathlib import Path

import redis
from django.utils import timezone

from billing.ledger_check import report
from billing.ledger_check.due import due_months, note_checked
from billing.models import LedgerCheckRun
from headrace_core import store_keys

KEPT = timedelta(days=90)
DIFFERENCES = store_keys.LEDGER_DIFFERENCES
log = logging.getLogger("headrace.ledger")


def check(client: "redis.Redis", *, spool: Path) -> LedgerCheckRun:
    """Compare the months that are due (due.py); what was found. Raises as report.check, and all stay due."""
    began = timezone.now()
    months = due_months(began)
    found = report.check(client, spool=spool, months=months)
    note_checked(months, began=began, differing=found.differing)
    for name, outcome in found.outcomes.items():
        for difference in outcome.differences[:10]:
            log.error("ledger check, %s: %s", name, difference)
    if not found.is_clean:
        log.error("ledger check: %d differences; `manage.py ledger check` lists them", found.differences)
    LedgerCheckRun.objects.filter(at__lt=timezone.now() - KEPT).delete()
    run = LedgerCheckRun.objects.create(differences=found.differences, report=found.as_object())
    client.set(DIFFERENCES, found.differences)
    return run
