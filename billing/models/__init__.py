"""The ledger: what was used, by the request and by the hour."""

from billing.models.dead_letter import DeadLetter
from billing.models.usage_hour import UsageHour
from billing.models.usage_record import Status, UsageCorrection, UsageQuerySet, UsageRecord, UsageSource

__all__ = ["DeadLetter", "Status", "UsageCorrection", "UsageHour", "UsageQuerySet", "UsageRecord", "UsageSource"]
