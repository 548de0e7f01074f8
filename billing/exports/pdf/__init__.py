"""An invoice as a PDF, set by Typst from its content and invoice.typ beside this file."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typst
from django.conf import settings

from billing.invoicing.content import Content

_FOLDER = Path(__file__).parent
# One font for all machines: what an operator's has installed changes no invoice. Those that Typst brings know Latin,
# Greek, Cyrillic, Hebrew, Arabic and Devanagari; for names in others HEADRACE_INVOICE_FONTS names a folder of fonts.
_FONTS: dict[str, Any] = {"ignore_system_fonts": True}


def pdf(content: Content, *, status: str = "finalised") -> Iterator[bytes]:
    """A4, tagged, the same bytes each time for a finalised invoice. A draft and a voided one say so on every page."""
    yield compile_pages(content, status=status, format="pdf")


def compile_pages(content: Content, *, status: str, **options: Any) -> Any:
    """What Typst makes of an invoice; with format="png" a picture of each page."""
    issued = datetime.fromisoformat(content["issued_at"]) if content["issued_at"] else datetime(2000, 1, 1, tzinfo=UTC)
    # The content goes in as data, so nothing in it is ever read as markup.
    data = {"invoice": json.dumps(content | {"status": status})}
    fonts = _FONTS | ({"font_paths": [settings.INVOICE_FONTS]} if settings.INVOICE_FONTS else {})
    return typst.compile(
        str(_FOLDER / "invoice.typ"), root=str(_FOLDER), sys_inputs=data, timestamp=issued, **fonts, **options
    )
