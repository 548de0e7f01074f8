"""The portal's tables: `{% table "API keys" %}<thead>…</thead><tbody>…</tbody>{% endtable %}`, in a frame so named.

On a narrow screen a row becomes a card (parts.css): each cell then shows its column's heading, which is written once,
in the table's head. With narrow="scrolls" it stays a table, for figures that are compared down a column: its first
column keeps its place while the others are scrolled.
"""

import re
from html import unescape

from django import template
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe

register = template.Library()
_HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_UNSEEN = re.compile(r'<span class="seen-by-readers">.*?</span>', re.DOTALL)
_START = re.compile(r"<(thead|tbody|tfoot|tr|th|td)\b([^>]*)>")
_SPAN = re.compile(r'\bcolspan="(\d+)"')
# A table laid out as blocks is none to some readers of screens, unless its parts say so.
_ROLES = {"thead": "rowgroup", "tbody": "rowgroup", "tfoot": "rowgroup", "tr": "row", "td": "cell"}


@register.simple_block_tag
def table(content: SafeString, name: str, *, narrow: str = "cards", kind: str = "") -> SafeString:
    """kind: further classes of the table. Raises ValueError for a layout that there is not."""
    if narrow not in ("cards", "scrolls"):
        raise ValueError(f"A table is of cards or scrolls, not {narrow!r}.")
    shown = _labelled(content) if narrow == "cards" else content
    return format_html(
        '<div class="table-frame" tabindex="0" role="region" aria-label="{}"><table class="{}"{}>{}</table></div>',
        name, f"is-{narrow} {kind}".strip(), mark_safe(' role="table"') if narrow == "cards" else "", shown,
    )  # fmt: skip


@register.simple_block_tag
def admin_table(content: SafeString, name: str) -> SafeString:
    """The same for the operators' own pages (admin.css)."""
    return format_html(
        '<div class="hr-table-frame" tabindex="0" role="region" aria-label="{}">'
        '<table class="hr-table hr-stack" role="table">{}</table></div>',
        name, _labelled(content),
    )  # fmt: skip


def _labelled(content: str) -> SafeString:
    """Each cell with the text of its column's heading, but for headings that are not seen; each part with its role."""
    texts = [
        " ".join(unescape(strip_tags(_UNSEEN.sub("", each))).split())
        for each in _HEADING.findall(content.partition("</thead>")[0])
    ]
    labels = [format_html(' data-label="{}"', text) if text else "" for text in texts]
    column = 0

    def marked(found: re.Match[str]) -> str:
        nonlocal column
        tag, attributes = found.groups()
        role = _ROLES.get(tag) or ("rowheader" if 'scope="row"' in attributes else "columnheader")
        label = ""
        if tag == "tr":
            column = 0
        elif tag in ("td", "th"):
            label = labels[column] if tag == "td" and column < len(labels) else ""
            span = _SPAN.search(attributes)
            column += int(span[1]) if span else 1
        return f'<{tag}{attributes} role="{role}"{label}>'

    # Of the templates' own text, whose variables are escaped: no value can hold a tag.
    return mark_safe(_START.sub(marked, content))
