"""What Django's admin looks for in an app: importing these registers their pages."""

from headrace.console import people
from headrace.console.billing import books, budgets, exchange_rates, invoices, invoicing_terms, prices, usage
from headrace.console.engines import confirmed_pools
from headrace.console.routing import routes
from headrace.console.tenants import keys, tenant_list

__all__ = [
    "books", "budgets", "confirmed_pools", "exchange_rates", "invoices", "invoicing_terms", "keys", "people", "prices",
    "routes", "tenant_list", "usage",
]  # fmt: skip
