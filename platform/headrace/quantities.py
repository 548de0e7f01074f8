"""Write quantities as people read them: number and unit, or a word for none. Money is billing/amounts.py's."""

from decimal import Decimal


def count(number: int | None) -> str:
    return "\u2013" if number is None else f"{number:,}"


def share(part: int, whole: int) -> str:
    """A percentage; a dash of nothing."""
    if not whole:
        return "\u2013"
    percent = 100 * part / whole
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "\u2013"
    if milliseconds >= 10_000:
        return f"{milliseconds / 1000:,.1f} s"
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.2f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"


def age(milliseconds: float) -> str:
    """A stretch of time in the largest unit that says enough: 4 s, 3 min, 5 h, 12 days."""
    seconds = max(0.0, milliseconds / 1000)
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def change(now: Decimal | int, before: Decimal | int) -> str:
    """What became of `before`: a signed percentage, or a word where there was nothing to compare with."""
    if not before:
        return "new" if now else "as before"
    percent = round(100 * (now - before) / before)
    if percent > 999:
        return f"{Decimal(now) / Decimal(before):,.0f} \u00d7"
    return f"{percent:+d} %".replace("-", "\u2212") if percent else "\u00b1 0 %"
