"""Operators' pages: the console, under /admin/."""
