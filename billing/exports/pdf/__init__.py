"""An invoice as a PDF, set by Typst from its content and invoice.typ beside this file."""

import json
import re
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
_BOXED = re.compile(r'the text `"(.+?)"` could not be displayed')


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


def unprintable(content: Content) -> list[str]:
    """The characters of an invoice for which there is no font, in order: its PDF shows a box in the place of each.

    Typst says so only where a standard forbids it, as PDF/A does (ISO 19005-2, 6.2.11.8). ASCII is not looked up.
    """
    if json.dumps(content, ensure_ascii=False).isascii():
        return []
    try:
        compile_pages(content, status="finalised", format="pdf", pdf_standards=["a-2b"])
    except typst.TypstError as error:
        return list(dict.fromkeys(_BOXED.findall(error.diagnostic)))
    return []
