"""The operators' pages on money: one file a subject."""

from billing.admin import budgets, invoices, invoicing_terms, prices, usage

__all__ = ["budgets", "invoices", "invoicing_terms", "prices", "usage"]
