"""A question from plain fields: the command's options, a page's form, a JSON body.

FIELDS lists every field with its default; an absent or empty one takes it. Values may be strings. Raises SizingError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from engines.sizing import cards, day
from engines.sizing.accelerators import Accelerator, accelerator
from engines.sizing.checks import known, within
from engines.sizing.cost import Prices
from engines.sizing.engine import EngineSettings
from engines.sizing.errors import BadValue
from engines.sizing.fleet import Targets
from engines.sizing.kv import kv_format
from engines.sizing.lengths import Lengths, Workload
from engines.sizing.question import Question
from engines.sizing.replica import Parallel, Speculation
from engines.sizing.weights import weight_format

FIELDS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "config": None,
    "gpu": "h100",
    "rate": 200.0,
    "growth": 1.0,
    "prompt": 2000.0,
    "output": 300.0,
    "prompt_cv": 1.0,
    "output_cv": 1.0,
    "arrival_cv": 1.0,
    "cached": 0.0,
    "ttft_p99": None,
    "tpot_p99": None,
    "spare": 0,
    "weights": None,
    "kv": "bf16",
    "tp": "auto",
    "pp": 1,
    "dp_attention": False,
    "chunk": 8192,
    "mixed": False,
    "memory_fraction": 0.90,
    "speculate": None,
    "disaggregate": False,
    "interconnect": None,
    "network": None,
    "curve": "flat",
    "gpu_hour": None,
    "hosted_input": None,
    "hosted_output": None,
}


def ask(given: Mapping[str, Any], told: Sequence[str] = ()) -> Question:
    """The question those fields ask, with `told` among its assumptions. Unknown fields are refused by name."""
    for name in given:
        known("field", name, FIELDS)
    values = FIELDS | {name: value for name, value in given.items() if value not in (None, "")}
    card = cards.model_from_config(Path(values["config"])) if values["config"] else cards.model(str(values["model"]))
    workload = _workload(values)
    assumptions = list(told)
    spread = f"{workload.prompt.cv:.2g} for prompts and {workload.output.cv:.2g} for answers"
    assumptions.append(f"lengths are lognormal, deviation / mean {spread}")
    assumptions.append("arrivals are Poisson and each replica gets an equal, independent share of them")
    if values["weights"] is None and card.checkpoint_format != "bf16":
        assumptions.append(f"weights in {card.checkpoint_format}, as published")
    return Question(
        card=card,
        accelerator=_accelerator(values),
        workload=workload,
        targets=Targets(_optional(values, "ttft_p99"), _optional(values, "tpot_p99"), _whole(values, "spare")),
        weights=weight_format(str(values["weights"] or card.checkpoint_format)).name,
        kv=kv_format(str(values["kv"])),
        parallel=_parallel(values),
        engine=EngineSettings(
            chunk=_whole(values, "chunk"),
            mixed=_flag(values["mixed"]),
            memory_fraction=_number(values, "memory_fraction"),
        ),
        speculation=_speculation(values["speculate"]),
        disaggregated=_flag(values["disaggregate"]),
        shares=_shares(values["curve"]),
        prices=_prices(values),
        assumptions=tuple(assumptions),
    )


def _number(values: Mapping[str, Any], name: str) -> float:
    try:
        number = float(values[name])
    except (TypeError, ValueError):
        raise BadValue(name, values[name], "must be a number") from None
    if not isfinite(number):
        raise BadValue(name, values[name], "must be a finite number")
    return number


def _whole(values: Mapping[str, Any], name: str) -> int:
    return int(_number(values, name))


def _optional(values: Mapping[str, Any], name: str) -> float | None:
    return None if values[name] is None else _number(values, name)


def _flag(value: Any) -> bool:
    return str(value).lower() in {"1", "true", "yes", "on"}


def _workload(values: Mapping[str, Any]) -> Workload:
    growth = within("growth", _number(values, "growth"), 0.01, 1000)
    return Workload(
        rate=_number(values, "rate") * growth,
        prompt=Lengths(_number(values, "prompt"), _number(values, "prompt_cv")),
        output=Lengths(_number(values, "output"), _number(values, "output_cv")),
        cached=_number(values, "cached"),
        arrival_cv=_number(values, "arrival_cv"),
    )


def _accelerator(values: Mapping[str, Any]) -> Accelerator:
    found = accelerator(str(values["gpu"]))
    for name in ("interconnect", "network"):
        if values[name] is not None:
            speed = within(name, _number(values, name), 0.1, 100_000, unit="GB/s") * 1e9
            found = replace(found, interconnect=speed) if name == "interconnect" else replace(found, network=speed)
    return found


def _parallel(values: Mapping[str, Any]) -> Parallel | None:
    pipeline, data = _whole(values, "pp"), _flag(values["dp_attention"])
    if str(values["tp"]) == "auto":
        if pipeline == 1 and not data:
            return None
        return Parallel(1, pipeline, data)
    return Parallel(_whole(values, "tp"), pipeline, data)


def _speculation(text: Any) -> Speculation | None:
    """ "4:0.7": four draft tokens, each accepted with probability 0.7."""
    if not text:
        return None
    tokens, _, acceptance = str(text).partition(":")
    pair = {"draft tokens": tokens, "acceptance": acceptance or "0.7"}
    return Speculation(_whole(pair, "draft tokens"), _number(pair, "acceptance"))


def _shares(text: Any) -> tuple[float, ...]:
    if isinstance(text, tuple):
        return day.check_curve(text)
    if "," in str(text):
        parts = dict(enumerate(str(text).split(",")))
        return day.check_curve(tuple(_number({"curve": part}, "curve") for part in parts.values()))
    return day.curve(str(text))


def _prices(values: Mapping[str, Any]) -> Prices | None:
    price = _optional(values, "gpu_hour")
    hosted = _optional(values, "hosted_input"), _optional(values, "hosted_output")
    if price is None:
        if hosted != (None, None):
            raise BadValue("gpu_hour", None, "a hosted price is compared with a GPU-hour price: give both")
        return None
    return Prices(price, *hosted)
