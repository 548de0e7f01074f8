"""The page's controls: what can be set, within which bounds, and how it is shown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engines.sizing import day, weights
from engines.sizing.accelerators import accelerator_names
from engines.sizing.asking import FIELDS
from engines.sizing.cards import model_names

# A file on the server is for the command line, never for a browser to name.
ASKABLE = frozenset(FIELDS) - {"config"}
START = {"ttft_p99": "1", "tpot_p99": "0.04", "gpu_hour": "2.5"}


@dataclass(frozen=True)
class Slider:
    """A number with a slider beside it; the slider is logarithmic between `low` and `high` unless `linear`."""

    name: str
    label: str
    unit: str
    value: str
    low: float
    high: float
    linear: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Choice:
    name: str
    label: str
    value: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Switch:
    name: str
    label: str
    on: bool


@dataclass(frozen=True)
class Group:
    title: str
    open: bool
    controls: tuple[Slider | Choice | Switch, ...]


def groups(given: Mapping[str, Any]) -> list[Group]:
    """The controls in their groups, showing `given`, else where the page starts."""
    at = {name: _text(given.get(name, START.get(name, FIELDS[name]))) for name in ASKABLE}

    def slider(name: str, label: str, unit: str, low: float, high: float, **how: bool) -> Slider:
        return Slider(name, label, unit, at[name], low, high, **how)

    def choice(name: str, label: str, options: Iterable[str | tuple[str, str]]) -> Choice:
        pairs = tuple((each, each) if isinstance(each, str) else each for each in options)
        return Choice(name, label, at[name], pairs)

    def switch(name: str, label: str) -> Switch:
        return Switch(name, label, at[name].lower() in {"1", "true", "on"})

    curves: list[str | tuple[str, str]] = list(day.CURVES)
    if "," in at["curve"]:
        curves.append((at["curve"], "from the ledger"))
    return [
        Group(
            "Model and hardware",
            True,
            (
                choice("model", "Model", model_names()),
                choice("gpu", "GPU", accelerator_names()),
                choice("weights", "Weights", [("", "as published"), *weights.FORMATS]),
                choice("kv", "KV cache", ["bf16", "fp8"]),
                choice("tp", "Tensor parallel", ["auto", "1", "2", "4", "8", "16"]),
                choice("pp", "Pipeline parallel", ["1", "2", "4", "8"]),
            ),
        ),
        Group(
            "Workload at the peak",
            True,
            (
                slider("rate", "Rate", "requests/s", 0.1, 10_000),
                slider("growth", "Growth", "x", 0.5, 10),
                slider("prompt", "Prompt", "tokens, mean", 16, 128_000),
                slider("output", "Answer", "tokens, mean", 1, 16_384),
                slider("cached", "Prompt found in the prefix cache", "share", 0, 0.95, linear=True),
                choice("curve", "Load over the day", curves),
            ),
        ),
        Group(
            "Targets",
            True,
            (
                slider("ttft_p99", "Time to first token (TTFT)", "s, 99 of 100 requests", 0.05, 30, optional=True),
                slider("tpot_p99", "Time per further token (TPOT)", "s, 99 of 100 requests", 0.005, 0.5, optional=True),
                slider("spare", "Spare replicas", "", 0, 10, linear=True),
            ),
        ),
        Group(
            "Prices",
            True,
            (
                slider("gpu_hour", "GPU-hour", "", 0.1, 30, optional=True),
                slider("hosted_input", "Hosted input", "per million", 0.01, 20, optional=True),
                slider("hosted_output", "Hosted output", "per million", 0.01, 80, optional=True),
            ),
        ),
        Group(
            "Engine and distribution",
            False,
            (
                slider("prompt_cv", "Prompt deviation / mean", "", 0, 3, linear=True),
                slider("output_cv", "Answer deviation / mean", "", 0, 3, linear=True),
                slider("arrival_cv", "Burstiness of arrivals", "1: Poisson", 0, 4, linear=True),
                slider("chunk", "Prefill chunk", "tokens", 256, 32_768),
                slider("memory_fraction", "Memory for weights and KV cache", "share", 0.5, 0.97, linear=True),
                choice(
                    "speculate",
                    "Speculative decoding",
                    [("", "off"), ("2:0.8", "2 tokens at 80%"), ("4:0.7", "4 tokens at 70%"), ("6:0.6", "6 at 60%")],
                ),
                switch("mixed", "Mix prefill chunks into decode steps"),
                switch("disaggregate", "Separate prefill and decode pools"),
                switch("dp_attention", "Data-parallel attention"),
            ),
        ),
    ]


def _text(value: Any) -> str:
    """As an input shows it: no trailing zeros, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(f"{each:.4f}" for each in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
