"""The checks, in the order in which they run."""

from billing.ledger_check.budgets import Budgets
from billing.ledger_check.check import Check
from billing.ledger_check.corrections import Corrections
from billing.ledger_check.costs import Costs, HourCosts
from billing.ledger_check.hours import Days, Hours, TargetHours
from billing.ledger_check.invoices import InvoicedUsage, Invoices, Numbers
from billing.ledger_check.records import Records

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Records(),
        Hours(),
        Days(),
        TargetHours(),
        Costs(),
        HourCosts(),
        Corrections(),
        Budgets(),
        Invoices(),
        InvoicedUsage(),
        Numbers(),
    )
}
