"""An answer as one JSON-ready object: the parameters, the figures, the verdict."""

from dataclasses import asdict
from typing import Any

from engines.sizing import reasoning
from engines.sizing.alternatives import Alternative
from engines.sizing.answer import Answer
from engines.sizing.reasoning import counted


def document(answer: Answer, alternatives: list[Alternative] | None = None) -> dict[str, Any]:
    """Times in seconds, sizes in bytes, rates a second, money as given."""
    found: dict[str, Any] = {
        "parameters": parameters(answer),
        "model": model(answer),
        "memory": asdict(answer.memory)
        | {"sequences_at_full_length": answer.full_length, "sequences_running_p99": answer.running},
        "prefill": {"seconds": answer.read, "share_of_time": answer.fleet.load.prefill_share},
        "decode": {
            "step_seconds": answer.step.total,
            "bound": answer.step.bound,
            "running": answer.fleet.load.running,
            "tokens_per_second": answer.fleet.load.running / answer.fleet.load.tpot_mean,
        },
        "latency": {
            name: getattr(answer.fleet.load, name)
            for name in ("ttft_mean", "ttft_p99", "tpot_mean", "tpot_p99", "longest_gap")
        },
        "day": asdict(answer.day),
        "cost": asdict(answer.cost) if answer.cost else None,
        "break_even": asdict(answer.break_even) if answer.break_even else None,
        "pools": asdict(answer.pools) if answer.pools else None,
        "reasoning": reasoning.lines(answer),
        "assumptions": list(answer.question.assumptions),
        "verdict": verdict(answer),
    }
    if alternatives is not None:
        found["alternatives"] = [asdict(each) for each in alternatives]
    return found


def parameters(answer: Answer) -> dict[str, Any]:
    question, workload, engine = answer.question, answer.question.workload, answer.question.engine
    return {
        "model": question.card.name,
        "gpu": question.accelerator.name,
        "weights": question.weights,
        "kv": question.kv,
        "tensor": answer.replica.parallel.tensor,
        "pipeline": answer.replica.parallel.pipeline,
        "data_attention": answer.replica.parallel.data_attention,
        "rate": workload.rate,
        "prompt": workload.prompt.mean,
        "prompt_cv": workload.prompt.cv,
        "output": workload.output.mean,
        "output_cv": workload.output.cv,
        "cached": workload.cached,
        "arrival_cv": workload.arrival_cv,
        "ttft_p99": question.targets.ttft_p99,
        "tpot_p99": question.targets.tpot_p99,
        "spare": question.targets.spare,
        "chunk": engine.chunk,
        "mixed": engine.mixed,
        "memory_fraction": engine.memory_fraction,
        "speculation": asdict(question.speculation) if question.speculation else None,
        "disaggregated": question.disaggregated,
        "curve": list(question.shares),
        "prices": asdict(question.prices) if question.prices else None,
    }


def model(answer: Answer) -> dict[str, Any]:
    counts, shape, card = answer.replica.parameters, answer.replica.kv_shape, answer.question.card
    return {
        "repository": card.repository,
        "parameters": counts.total,
        "active_parameters": counts.active,
        "attention": card.architecture.attention_kind,
        "weight_bytes": answer.replica.weight_bytes.total,
        "kv_bytes_per_token": shape.per_token,
        "max_context": card.architecture.max_context,
        "sources": {"model": card.source, "gpu": answer.question.accelerator.source},
        "notes": [note for note in (card.note, answer.question.accelerator.note) if note],
    }


def verdict(answer: Answer) -> dict[str, Any]:
    fleet, pools = answer.fleet, answer.pools
    return {
        "gpus": answer.gpus,
        "replicas": answer.gpus // fleet.gpus_each,
        "gpus_per_replica": fleet.gpus_each,
        "spare": fleet.spare,
        "capacity": answer.whole.capacity,
        "bound": answer.bound,
        "gives_way_first": fleet.limit if pools is None else None,
        "sentence": sentence(answer),
    }


def sentence(answer: Answer) -> str:
    """The answer in one line."""
    fleet, name = answer.fleet, answer.question.accelerator.name
    if pools := answer.pools:
        return (
            f"{answer.gpus} x {name}: {pools.prefill_replicas} prefill and {pools.decode_replicas} decode replicas of "
            f"{counted(pools.gpus_each, 'GPU')}"
        )
    spare = f", {fleet.spare} of them spare" if fleet.spare else ""
    return (
        f"{answer.gpus} x {name}: {counted(fleet.replicas + fleet.spare, 'replica')} of "
        f"{counted(fleet.gpus_each, 'GPU')}{spare}; bound by {answer.bound}, {fleet.limit} gives way first"
    )
