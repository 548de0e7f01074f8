"""The ledger: what was used, by the request and by the hour, and the prices it is charged at."""

from billing.models.dead_letter import DeadLetter
from billing.models.dropped_month import DroppedMonth
from billing.models.ledger_check_run import LedgerCheckRun
from billing.models.price import Price
from billing.models.usage_hour import UsageHour
from billing.models.usage_record import Status, UsageCorrection, UsageQuerySet, UsageRecord, UsageSource

__all__ = [
    "DeadLetter",
    "DroppedMonth",
    "LedgerCheckRun",
    "Price",
    "Status",
    "UsageCorrection",
    "UsageHour",
    "UsageQuerySet",
    "UsageRecord",
    "UsageSource",
]
