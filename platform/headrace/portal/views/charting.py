"""What a chart is drawn from: instants and columns of numbers, every hour or day of the span, used or not."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from billing.periods import day_begin
from headrace.portal.period import Period

MOST_DRAWN = 4  # groups in a chart, beside all others


def chart(
    span: Period, found: Sequence[datetime], columns: Sequence[tuple[str, Sequence[Any]]], *, unit: str
) -> dict[str, object]:
    """`columns` hold a number for each instant of `found`; instants that it lacks are 0. Numbers are for looking at."""
    steps = _steps(span)
    places = {moment: index for index, (moment, _) in enumerate(steps)}
    series = []
    for name, numbers in columns:
        filled = [0.0] * len(steps)
        for moment, number in zip(found, numbers, strict=True):
            if (place := places.get(moment)) is not None:
                filled[place] += float(number)
        series.append({"name": name, "values": [_short(number) for number in filled]})
    return {
        "unit": unit,
        "zone": span.zone,
        "step": "hour" if span.is_short else "day",
        "times": [int(shown.timestamp()) for _, shown in steps],
        "series": series,
    }


def stacked(
    span: Period, cells: Iterable[tuple[datetime, str | None, int]], drawn: Sequence[tuple[str, str]], *, unit: str
) -> dict[str, object]:
    """`cells`: an instant, a group, its number. `drawn`: the groups that are drawn, with their titles, MOST_DRAWN at
    most; all others together, None among them."""
    found = list(cells)
    moments = sorted({moment for moment, _, _ in found})
    shown: dict[str | None, dict[datetime, int]] = {name: dict.fromkeys(moments, 0) for name, _ in drawn}
    others = dict.fromkeys(moments, 0)
    for moment, name, number in found:
        shown.get(name, others)[moment] += number
    columns = [(title, list(shown[name].values())) for name, title in drawn]
    if any(others.values()):
        columns.append(("All others", list(others.values())))
    return chart(span, moments, columns, unit=unit)


def _steps(span: Period) -> list[tuple[datetime, datetime]]:
    """Each hour or day of the span, and an instant that shows as it in the span's zone: days of another zone too."""
    if span.is_short:
        return [(hour, hour) for hour in span.calendar.hours(span.start, span.end)]
    return [(begin, day_begin(day, span.zone)) for day, begin in span.calendar.days(span.start, span.end)]


def _short(number: float) -> float | int:
    return int(number) if number == int(number) else number
