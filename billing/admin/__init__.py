"""The operators' pages on money: one file a subject."""

from billing.admin import budgets, prices, usage

__all__ = ["budgets", "prices", "usage"]
