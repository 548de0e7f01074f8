"""Dates and numbers as the screens show them, by language."""
