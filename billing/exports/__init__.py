"""What leaves Headrace as a file: usage as plain values, and invoices as PDF, CSV, XLSX, JSON and FOCUS 1.2.

An invoice's exports are made of its content (invoicing/content.py), the copy that its hash is of, so all of them say
the same. `formats.py` has them by name.
"""

from billing.exports.usage import FIELDS, dropped_within, usage_rows

__all__ = ["FIELDS", "dropped_within", "usage_rows"]
