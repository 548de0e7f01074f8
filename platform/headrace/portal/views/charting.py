"""What a chart is drawn from: instants and columns of numbers, every hour or day of the span, used or not."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from headrace.portal.period import Period

MOST_DRAWN = 4  # groups in a chart, beside all others


def chart(
    span: Period, found: Sequence[datetime], columns: Sequence[tuple[str, Sequence[Any]]], *, unit: str
) -> dict[str, object]:
    """`columns` hold a number for each instant of `found`; instants that it lacks are 0. Numbers are for looking at."""
    steps = _steps(span)
    places = {moment.timestamp(): index for index, moment in enumerate(steps)}  # of two zones, times may never be equal
    series = []
    for name, numbers in columns:
        filled = [0.0] * len(steps)
        for moment, number in zip(found, numbers, strict=True):
            if (place := places.get(moment.timestamp())) is not None:
                filled[place] += float(number)
        series.append({"name": name, "values": [_short(number) for number in filled]})
    return {
        "unit": unit,
        "zone": span.zone,
        "step": "hour" if span.is_short else "day",
        "times": [int(moment.timestamp()) for moment in steps],
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


def _steps(span: Period) -> list[datetime]:
    zone = ZoneInfo(span.zone)
    moment, steps = span.start.astimezone(zone), []
    while moment < span.end:
        steps.append(moment)
        if span.is_short:  # hours of elapsed time: a clock set back has one twice
            moment = datetime.fromtimestamp(moment.timestamp() + 3600, zone)
        else:
            moment = moment + timedelta(days=1)
    return steps


def _short(number: float) -> float | int:
    return int(number) if number == int(number) else number
