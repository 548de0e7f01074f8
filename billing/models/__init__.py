"""The ledger: what was used, by request, hour and day, the prices it is charged at, and the invoices over it."""

from billing.models.billing_account import BillingAccount
from billing.models.budget import Budget, BudgetAdjustment, BudgetAlert, Period, SetBy
from billing.models.checked_month import CheckedMonth, MonthChange
from billing.models.credit import Credit
from billing.models.dead_letter import DeadLetter
from billing.models.dropped_month import DroppedMonth
from billing.models.exchange_rate import ExchangeRate
from billing.models.invoice import Invoice, InvoiceLine, InvoiceQuerySet
from billing.models.late_usage import LateUsage
from billing.models.ledger_check_run import LedgerCheckRun
from billing.models.legal_entity import LegalEntity
from billing.models.price import Price
from billing.models.refusal_batch import RefusalBatch
from billing.models.refused_hour import RefusedHour
from billing.models.target_hour import TargetHour
from billing.models.tenant_zone import TenantZone
from billing.models.usage_day import UsageDay
from billing.models.usage_hour import UsageHour
from billing.models.usage_record import Status, UsageCorrection, UsageQuerySet, UsageRecord, UsageSource
from billing.models.webhook import Delivery, Notice, WebhookEndpoint

__all__ = [
    "BillingAccount",
    "Budget",
    "BudgetAdjustment",
    "BudgetAlert",
    "CheckedMonth",
    "Credit",
    "DeadLetter",
    "Delivery",
    "DroppedMonth",
    "ExchangeRate",
    "Invoice",
    "InvoiceLine",
    "InvoiceQuerySet",
    "LateUsage",
    "LedgerCheckRun",
    "LegalEntity",
    "MonthChange",
    "Notice",
    "Period",
    "Price",
    "RefusalBatch",
    "RefusedHour",
    "SetBy",
    "Status",
    "TargetHour",
    "TenantZone",
    "UsageCorrection",
    "UsageDay",
    "UsageHour",
    "UsageQuerySet",
    "UsageRecord",
    "UsageSource",
    "WebhookEndpoint",
]
