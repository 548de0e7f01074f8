"""The rows of the page's table, written here: a template takes longer over its thousand cells than the report does."""

from collections.abc import Sequence
from decimal import Decimal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from billing.amounts import UNKNOWN, telling
from billing.cost.export import gap, when
from billing.cost.line import Line

_PAIR = "{}<small>{}</small></td>"
_RIGHT = '<td class="hr-right">'
_ROW = (
    '<tr><td class="costs-when">{}</td><td>'
    + _PAIR
    + (_RIGHT + _PAIR) * 2
    + '<td class="hr-right costs-main">'
    + _PAIR
    + _RIGHT
    + "{}</td>"
    + _RIGHT
    + _PAIR
    + '<td class="hr-right"{}>{}<small class="{}">{}</small></td><td class="hr-right" title="{}">'
    + _PAIR
    + '<td class="hr-right costs-gap">{}</td></tr>'
)


def rows(lines: Sequence[Line], by: str) -> SafeString:
    """Under the template's headings, in this order."""
    return format_html_join("\n", _ROW, (_cells(line, by) for line in lines))


def _cells(line: Line, by: str) -> tuple[str, ...]:
    missing = format_html(' title="no rate {}"', ", ".join(line.missing)) if line.missing else ""
    return (
        when(line.start, by),
        line.pool,
        line.model or UNKNOWN,
        "not sampled" if line.cost is None and not line.missing else f"{_money(line.cost, 2)} {line.currency}",
        f"{line.up_hours:,.1f} h",
        f"{line.tokens.output:,}" if line.tokens.output else UNKNOWN,
        f"{line.tokens.all:,}" if line.tokens.all else UNKNOWN,
        _money(line.per_output),
        _money(line.per_token),
        UNKNOWN if line.utilisation is None else f"{line.utilisation:.1%}",
        _money(line.full_per_output),
        _money(line.full_per_token),
        missing,
        _money(line.charged_per_output),
        "costs-loss" if line.margin is not None and line.margin < 0 else "",
        _money(line.margin, 2),
        line.hosted,
        _money(line.hosted_per_output),
        UNKNOWN if line.break_even is None else f"{line.break_even:.1%}",
        gap(line.gap_seconds),
    )


def _money(value: Decimal | None, places: int = 4) -> str:
    return UNKNOWN if value is None else telling(value, places)
