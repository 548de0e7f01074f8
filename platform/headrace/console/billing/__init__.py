"""The console's pages of prices, budgets, usage and invoices."""
