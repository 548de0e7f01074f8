"""The operators' pages on money: one file a subject."""

from billing.admin import prices, usage

__all__ = ["prices", "usage"]
