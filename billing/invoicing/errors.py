"""Why an invoice is not what it was asked to become.

InvoiceError
    CannotFinalise  what stands in the way, all of it (`reasons`)
    NotPossible     the invoice's status, or an amount, does not allow it
"""

from dataclasses import dataclass


class InvoiceError(Exception):
    """The text says what is in the way."""


class NotPossible(InvoiceError):
    pass


@dataclass(frozen=True)
class Reason:
    """One thing that keeps a draft from being finalised: its code, and what an operator can do about it."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


class CannotFinalise(InvoiceError):
    def __init__(self, reasons: list[Reason]) -> None:
        super().__init__("; ".join(map(str, reasons)))
        self.reasons = reasons
