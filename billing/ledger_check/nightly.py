"""The check that runs by itself: kept for the Overview, logged where it finds a difference, and a metric."""

import logging
import os
from datetime import timedelta
from pathlib import Path

import redis
from django.utils import timezone
from prometheus_client import Gauge

from billing.ledger_check import report
from billing.models import LedgerCheckRun

KEPT = timedelta(days=90)
log = logging.getLogger("headrace.ledger")

Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).mkdir(parents=True, exist_ok=True)
DIFFERENCES = Gauge(
    "headrace_ledger_differences",
    "Differences that the last check of the ledger found.",
    multiprocess_mode="mostrecent",
)


def check(client: "redis.Redis", *, spool: Path) -> LedgerCheckRun:
    """Compare all books; what was found. Raises as report.check."""
    found = report.check(client, spool=spool)
    for name, outcome in found.outcomes.items():
        for difference in outcome.differences[:10]:
            log.error("ledger check, %s: %s", name, difference)
    if not found.is_clean:
        log.error("ledger check: %d differences; `manage.py ledger check` lists them", found.differences)
    DIFFERENCES.set(found.differences)
    LedgerCheckRun.objects.filter(at__lt=timezone.now() - KEPT).delete()
    return LedgerCheckRun.objects.create(differences=found.differences, report=found.as_object())
