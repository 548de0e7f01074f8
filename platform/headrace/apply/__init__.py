"""Configuration as code: `apply` brings the database to a YAML document, `export` writes the document back."""

from headrace.apply.document import Result, apply_document, apply_prices
from headrace.apply.export import export_document
from headrace.apply.problems import ApplyError

__all__ = ["ApplyError", "Result", "apply_document", "apply_prices", "export_document"]
