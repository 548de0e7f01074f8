"""The ledger: what was used, by the request and by the hour, and the prices it is charged at."""

from billing.models.dead_letter import DeadLetter
from billing.models.price import Price
from billing.models.usage_hour import UsageHour
from billing.models.usage_record import Status, UsageCorrection, UsageQuerySet, UsageRecord, UsageSource

__all__ = [
    "DeadLetter",
    "Price",
    "Status",
    "UsageCorrection",
    "UsageHour",
    "UsageQuerySet",
    "UsageRecord",
    "UsageSource",
]
