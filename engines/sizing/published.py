"""Published measurements of real engines beside what this arithmetic predicts for the same setting."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engines.sizing import prefill, saturation
from engines.sizing.accelerators import accelerator
from engines.sizing.cards import FOLDER, model
from engines.sizing.engine import EngineSettings
from engines.sizing.lengths import Lengths, Workload
from engines.sizing.replica import Parallel, Replica, make

BATCH_LIMIT = 2048  # trtllm-bench's default for running requests
LABELS = {
    "first_token": "first token",
    "static_batch": "static batch throughput",
    "offline": "saturated throughput",
    "batch_latency": "batch latency",
    "closed_loop_itl": "time between tokens",
    "closed_loop_throughput": "throughput",
    "closed_loop_ttft": "first token under load",
}


@dataclass(frozen=True)
class Comparison:
    """`ratio` = predicted / published. `fitted`: the row set one of the efficiencies, so it proves nothing."""

    setting: str
    measure: str
    published: float
    predicted: float
    unit: str
    source: str
    fitted: bool
    sparse: bool

    @property
    def ratio(self) -> float:
        return self.predicted / self.published


def _file() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / "published.json").read_text())
    return loaded


def sources() -> dict[str, dict[str, str]]:
    """Citation by key: title, url, setting."""
    found: dict[str, dict[str, str]] = _file()["sources"]
    return found


def compare() -> list[Comparison]:
    """Every published row with its prediction, in the file's order."""
    return [_compare(row) for row in _file()["rows"]]


def spread(rows: Sequence[Comparison]) -> tuple[float, float, float]:
    """Smallest, geometric mean and largest ratio."""
    ratios = [row.ratio for row in rows]
    return min(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios)), max(ratios)


def _compare(row: dict[str, Any]) -> Comparison:
    parallel = Parallel(row["tensor"], row.get("pipeline", 1), row.get("data_attention", False))
    alternating = row["kind"] in {"first_token", "static_batch", "batch_latency"}
    replica = make(
        model(row["model"]),
        accelerator(row["gpu"]),
        weights=row["weights"],
        kv=row["kv"],
        parallel=parallel,
        engine=EngineSettings(mixed=not alternating),
    )
    load = f", batch {row['batch']}" if "batch" in row else ""
    load += f", {row['concurrency']} clients" if "concurrency" in row else ""
    lengths = f"{row['prompt']}/{row['output']}" if row["output"] > 1 else f"{row['prompt']} in"
    return Comparison(
        setting=f"{row['model']} {row['weights']}, {row['gpu']} {parallel}, {lengths}{load}",
        measure=LABELS[row["kind"]],
        published=row["published"],
        predicted=_predict(replica, row),
        unit=row["unit"],
        source=row["source"],
        fitted=row["fitted"],
        sparse=replica.card.architecture.mixture is not None,
    )


def _predict(replica: Replica, row: dict[str, Any]) -> float:
    prompt, output, kind = row["prompt"], row["output"], row["kind"]
    if kind == "first_token":
        return prefill.alone(replica, prompt) * 1000
    if kind in {"static_batch", "batch_latency"}:
        result = saturation.one_batch(replica, row["batch"], prompt, output)
        return (
            result.tokens_per_second
            if kind == "static_batch"
            else row["batch"] * output / result.tokens_per_second * 1000
        )
    workload = Workload(1, Lengths(prompt), Lengths(output))
    if kind == "offline":
        most = BATCH_LIMIT * (replica.parallel.tensor if replica.parallel.data_attention else 1)
        return saturation.offline(replica, workload, most=most).tokens_per_second
    closed = saturation.closed_loop(replica, workload, row["concurrency"])
    values = {
        "closed_loop_itl": closed.tpot * 1000,
        "closed_loop_ttft": closed.ttft * 1000,
        "closed_loop_throughput": closed.tokens_per_second,
    }
    return values[kind]
