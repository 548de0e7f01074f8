"""The operators' pages on money: one file a subject."""

from billing.admin import books, budgets, invoices, invoicing_terms, prices, usage

__all__ = ["books", "budgets", "invoices", "invoicing_terms", "prices", "usage"]
