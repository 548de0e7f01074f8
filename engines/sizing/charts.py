"""The three charts of the sizing page, as numbers."""

import math
from typing import Any

from engines.sizing import cost
from engines.sizing.answer import Answer

RATE_POINTS, UTILISATION_POINTS = 40, 40


def charts(answer: Answer) -> dict[str, Any]:
    """replicas: [rate, replicas] up to twice the peak; cost: [utilisation, per million output tokens], and the
    hosted price of one million output tokens with their share of input; memory: parts of one GPU in bytes."""
    return {"replicas": _replicas(answer), "cost": _cost(answer), "memory": _memory(answer)}


def _replicas(answer: Answer) -> dict[str, Any]:
    peak, whole = answer.question.workload.rate, answer.whole
    rates = [2 * peak * (index + 1) / RATE_POINTS for index in range(RATE_POINTS)]
    return {
        "points": [[rate, whole.gpus_for(rate) // whole.gpus_each] for rate in rates],
        "peak": [peak, whole.gpus // whole.gpus_each],
        "gpus_per_replica": whole.gpus_each,
    }


def _cost(answer: Answer) -> dict[str, Any] | None:
    prices, workload = answer.question.prices, answer.question.workload
    if prices is None:
        return None
    speed = answer.whole.capacity * workload.output.mean
    lowest = math.log10(min(0.02, max(1e-6, answer.day.utilisation / 2)))
    shares = [10 ** (lowest * (1 - index / (UTILISATION_POINTS - 1))) for index in range(UTILISATION_POINTS)]
    hosted = None
    if prices.hosted_input is not None and prices.hosted_output is not None:
        hosted = prices.hosted_output + prices.hosted_input * workload.prompt.mean / workload.output.mean
    hour = prices.gpu_hour * answer.gpus
    return {
        "points": [[share, cost.per_million(hour, speed, share)] for share in shares],
        "here": [answer.day.utilisation, answer.cost.per_million_output if answer.cost else None],
        "hosted": hosted,
    }


def _memory(answer: Answer) -> dict[str, Any]:
    plan = answer.memory
    per_sequence = plan.kv / max(1, answer.running)
    used = min(plan.kv, per_sequence * answer.fleet.load.running)
    return {
        "capacity": plan.capacity,
        "parts": [
            ["weights", plan.weights],
            ["draft", plan.draft],
            ["KV in use at the peak", used],
            ["KV free", plan.kv - used],
            ["activations, graphs, buffers", plan.reserve],
        ],
    }
