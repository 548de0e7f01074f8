"""A line chart of a report, as the parts of an SVG: a line for each pool and model, broken where there is a gap."""

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from billing.cost.export import when
from billing.cost.report import Report

WIDTH, HEIGHT = 960, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 30
MOST_SERIES = 6
_DOT = '<circle cx="{}" cy="{}" r="3"><title>{}</title></circle>'


@dataclass(frozen=True)
class Series:
    name: str
    number: int
    pieces: list[str]  # "x,y x,y ..." of each unbroken stretch
    dots: SafeString  # a circle for each point, which says what it is


@dataclass(frozen=True)
class Tick:
    at: float
    words: str


@dataclass(frozen=True)
class Chart:
    """One currency's: costs of two are not drawn on one scale."""

    currency: str
    series: list[Series]
    across: list[Tick]
    up: list[Tick]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    floor: int = HEIGHT - BOTTOM


def charts(report: Report) -> list[Chart]:
    """One for each currency that has anything to show, with the costliest series first."""
    return [chart for currency in report.currencies if (chart := _chart(report, currency)) is not None]


def _chart(report: Report, currency: str) -> Chart | None:
    starts = sorted({line.start for line in report.lines})
    values: dict[str, dict[datetime, Decimal]] = {}
    for line in report.lines:
        if line.currency == currency and line.per_output is not None:
            name = f"{line.pool} · {line.model}" if line.model else line.pool
            values.setdefault(name, {})[line.start] = line.per_output
    if not values:
        return None
    top = _nice(float(max(max(each.values()) for each in values.values())))
    names = sorted(values, key=lambda name: max(values[name].values()), reverse=True)[:MOST_SERIES]
    places = {start: _across(index, len(starts)) for index, start in enumerate(starts)}
    labels = {start: when(start, report.asked.by) for start in starts}
    series = [_series(name, number, values[name], places, labels, top) for number, name in enumerate(sorted(names), 1)]
    step = max(1, math.ceil(len(starts) / 8))
    across = [Tick(places[start], labels[start].split(" +")[0]) for start in starts[::step]]
    up = [Tick(_height(top * part / 4, top), f"{top * part / 4:,.4g}") for part in range(5)]
    return Chart(currency, series, across, up)


def _series(
    name: str,
    number: int,
    values: dict[datetime, Decimal],
    places: dict[datetime, float],
    labels: dict[datetime, str],
    top: float,
) -> Series:
    pieces: list[list[str]] = [[]]
    dots = []
    for start, x in places.items():
        if (value := values.get(start)) is None:
            pieces.append([])
            continue
        y = _height(float(value), top)
        pieces[-1].append(f"{x:.1f},{y:.1f}")
        dots.append((f"{x:.1f}", f"{y:.1f}", f"{name}, {labels[start]}: {value:,.4f}"))
    return Series(name, number, [" ".join(piece) for piece in pieces if piece], format_html_join("", _DOT, dots))


def _across(index: int, count: int) -> float:
    span = WIDTH - LEFT - RIGHT
    return LEFT + (span / 2 if count == 1 else span * index / (count - 1))


def _height(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _nice(most: float) -> float:
    """The end of the scale: the next of 1, 2, 2.5, 5 and 10 times a power of ten."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= most * 1.0001 or step == 10)
