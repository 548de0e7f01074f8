"""The operators' pages on money: one file a subject."""

from billing.admin import books, budgets, exchange, invoices, invoicing_terms, prices, usage

__all__ = ["books", "budgets", "exchange", "invoices", "invoicing_terms", "prices", "usage"]
