"""Short ways to make what the tests ask about."""

from typing import Any

from engines.sizing.accelerators import accelerator
from engines.sizing.answer import Answer, solve
from engines.sizing.asking import ask
from engines.sizing.cards import model
from engines.sizing.engine import EngineSettings
from engines.sizing.replica import Parallel, Replica, Speculation, make


def replica(
    name: str = "llama-3.1-8b",
    gpu: str = "h100",
    *,
    weights: str = "bf16",
    kv: str = "bf16",
    tensor: int = 1,
    pipeline: int = 1,
    engine: EngineSettings | None = None,
    speculation: Speculation | None = None,
) -> Replica:
    return make(
        model(name),
        accelerator(gpu),
        weights=weights,
        kv=kv,
        parallel=Parallel(tensor, pipeline),
        engine=engine,
        speculation=speculation,
    )


def chat(**changed: Any) -> Answer:
    """The 200 requests/s chat product: 2,000 tokens in, 300 out, TTFT p99 1 s, TPOT p99 40 ms."""
    asked: dict[str, Any] = {"rate": 200, "prompt": 2000, "output": 300, "ttft_p99": 1, "tpot_p99": 0.04}
    return solve(ask(asked | changed))
