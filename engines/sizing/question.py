"""A question to answer, complete: the model, the hardware, the workload, the targets, the prices."""

from dataclasses import dataclass, field

from engines.sizing.accelerators import Accelerator
from engines.sizing.cards import ModelCard
from engines.sizing.cost import Prices
from engines.sizing.day import CURVES
from engines.sizing.engine import EngineSettings
from engines.sizing.errors import BadValue
from engines.sizing.fleet import Targets
from engines.sizing.lengths import Workload
from engines.sizing.replica import Parallel, Replica, Speculation, make


@dataclass(frozen=True)
class Question:
    """`parallel` None: the tensor-parallel size with the fewest GPUs is chosen. `assumptions` are told to people."""

    card: ModelCard
    accelerator: Accelerator
    workload: Workload
    targets: Targets = field(default_factory=Targets)
    weights: str = "bf16"
    kv: str = "bf16"
    parallel: Parallel | None = None
    engine: EngineSettings = field(default_factory=EngineSettings)
    speculation: Speculation | None = None
    disaggregated: bool = False
    shares: tuple[float, ...] = CURVES["flat"]
    prices: Prices | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        longest = self.workload.prompt.mean + self.workload.output.mean
        limit = self.card.architecture.max_context
        if limit and longest > limit:
            raise BadValue("prompt + output", f"{longest:g}", f"{self.card.name} has a context of {limit:,} tokens")

    def replica(self, parallel: Parallel) -> Replica:
        return make(
            self.card,
            self.accelerator,
            weights=self.weights,
            kv=self.kv,
            parallel=parallel,
            engine=self.engine,
            speculation=self.speculation,
        )
