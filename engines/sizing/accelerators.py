"""Accelerators: memory, bandwidth, dense FLOP/s per number format and links, from cards/accelerators.json."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from engines.sizing.cards import FOLDER
from engines.sizing.checks import known


@dataclass(frozen=True)
class Accelerator:
    """`bandwidth` bytes/s of device memory; `flops` dense FLOP/s by format (bf16, fp8, fp4); `interconnect` and
    `network` bytes/s one way per GPU, inside and out of the node, None where no sourced figure was found."""

    name: str
    title: str
    memory_bytes: float
    bandwidth: float
    flops: dict[str, float]
    interconnect: float | None
    network: float | None
    source: str
    note: str = ""

    def rate(self, compute: str) -> tuple[str, float]:
        """The format products of `compute` weights really run in, and its FLOP/s. Without units for it, weights are
        widened to bf16; microscaled 4-bit weights ("mx") meet 8-bit activations where there are FP4 units."""
        wanted = ("fp8" if "fp4" in self.flops else "bf16") if compute == "mx" else compute
        form = wanted if wanted in self.flops else "bf16"
        return form, self.flops[form]


@cache
def _table() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for row in json.loads((FOLDER / "accelerators.json").read_text())["accelerators"]:
        for name in [row["name"], *row.get("aliases", [])]:
            rows[name] = row
    return rows


def accelerator_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["name"] for row in _table().values()))


def accelerator(name: str) -> Accelerator:
    """The accelerator called `name` (or an alias). Raises UnknownName with near names."""
    row = _table()[known("GPU", name, _table())]
    return Accelerator(
        name=row["name"],
        title=row["title"],
        memory_bytes=row["memory_bytes"],
        bandwidth=row["bandwidth"],
        flops=dict(row["flops"]),
        interconnect=row["interconnect"],
        network=row["network"],
        source=row["source"],
        note=row.get("note", ""),
    )
