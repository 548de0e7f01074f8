"""Prometheus's text format, as far as a load is read from it. An engine's page has thousands of lines a second."""

import re
from collections.abc import Iterable
from math import isfinite

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = dict[str, str]


class Exposition:
    """The samples of one page whose names are wanted. A value that is no number, as NaN for "unknown", is not there."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self._samples: dict[str, list[tuple[Labels, float]]] = {}
        names = frozenset(wanted)
        for line in text.splitlines():
            if line.startswith("#") or (found := _SAMPLE.match(line)) is None or found[1] not in names:
                continue
            try:
                value = float(found[3])
            except ValueError:
                continue
            if isfinite(value):
                self._samples.setdefault(found[1], []).append((dict(_LABEL.findall(found[2] or "")), value))

    def sum(self, *names: str, **having: str) -> float | None:
        """The sum over the series of the first of `names` that is there; None if none is.

        `having`: of series with that label, only those with that value.
        """
        values = self._values(names, having)
        return sum(values) if values else None

    def mean(self, *names: str, **having: str) -> float | None:
        values = self._values(names, having)
        return sum(values) / len(values) if values else None

    def labels(self, name: str) -> list[Labels]:
        return [labels for labels, _ in self._samples.get(name, [])]

    def _values(self, names: tuple[str, ...], having: Labels) -> list[float]:
        for name in names:
            if samples := self._samples.get(name):
                return [value for labels, value in samples if all(labels.get(k, v) == v for k, v in having.items())]
        return []
