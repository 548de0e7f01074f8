"""One replica: a model in a format, on so many GPUs of one kind, under one engine."""

from dataclasses import dataclass, field
from functools import cached_property

from engines.sizing.accelerators import Accelerator
from engines.sizing.cards import ModelCard
from engines.sizing.checks import within
from engines.sizing.engine import EngineSettings
from engines.sizing.errors import BadValue
from engines.sizing.kv import KvShape, kv_format, kv_shape
from engines.sizing.parameters import Parameters, count
from engines.sizing.weights import WeightBytes, WeightFormat, weight_bytes, weight_format


@dataclass(frozen=True)
class Parallel:
    """`tensor` splits every matrix over that many GPUs, `pipeline` the layers over that many groups of them.

    `data_attention` (SGLang --enable-dp-attention) keeps attention whole on each GPU of the tensor group, each
    serving its own sequences, and splits only the experts: it is how MLA models avoid copies of the cache."""

    tensor: int = 1
    pipeline: int = 1
    data_attention: bool = False

    def __post_init__(self) -> None:
        within("tensor parallel size", self.tensor, 1, 128)
        within("pipeline parallel size", self.pipeline, 1, 64)

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline

    def __str__(self) -> str:
        return (
            f"TP {self.tensor}"
            + (f" x PP {self.pipeline}" if self.pipeline > 1 else "")
            + (" with data-parallel attention" if self.data_attention else "")
        )


@dataclass(frozen=True)
class Speculation:
    """Speculative decoding: `draft_tokens` proposed a step, each accepted with probability `acceptance`; proposing
    one costs `draft_cost` of a target step and its weights `draft_cost` of the target's."""

    draft_tokens: int = 4
    acceptance: float = 0.7
    draft_cost: float = 0.05

    def __post_init__(self) -> None:
        within("draft tokens", self.draft_tokens, 1, 64)
        within("acceptance", self.acceptance, 0, 0.999)
        within("draft cost", self.draft_cost, 0, 1)

    @property
    def tokens_per_step(self) -> float:
        """(1 - a^(k+1)) / (1 - a): tokens a verification yields on average (Leviathan, arXiv:2211.17192, eq. 1)."""
        return (1 - self.acceptance ** (self.draft_tokens + 1)) / (1 - self.acceptance)


@dataclass(frozen=True)
class Replica:
    card: ModelCard
    accelerator: Accelerator
    weights: WeightFormat
    kv: str = "bf16"
    parallel: Parallel = field(default_factory=Parallel)
    engine: EngineSettings = field(default_factory=EngineSettings)
    speculation: Speculation | None = None

    def __post_init__(self) -> None:
        heads, tensor = self.card.architecture.heads, self.parallel.tensor
        if heads % tensor and not self.parallel.data_attention:
            raise BadValue(
                "tensor parallel size", tensor, f"must divide the {heads} attention heads of {self.card.name}"
            )
        if self.parallel.pipeline > len(self.card.architecture.layers):
            raise BadValue("pipeline parallel size", self.parallel.pipeline, "more stages than layers")
        if self.parallel.gpus > 1 and self.accelerator.interconnect is None:
            raise BadValue(
                "gpus per replica", self.parallel.gpus, f"no sourced interconnect for {self.accelerator.name}; give one"
            )

    @cached_property
    def parameters(self) -> Parameters:
        return count(self.card.architecture)

    @cached_property
    def weight_bytes(self) -> WeightBytes:
        return weight_bytes(self.parameters, self.weights)

    @cached_property
    def kv_shape(self) -> KvShape:
        return kv_shape(self.card.architecture, self.kv)

    @property
    def gpus(self) -> int:
        return self.parallel.gpus

    @cached_property
    def kv_ways(self) -> float:
        """Over how many GPUs of a tensor group one sequence's cache is divided: grouped heads divide up to their
        number and are copied beyond it; MLA's single latent is copied on every GPU unless attention is data-parallel,
        where each sequence lives on one GPU of the group."""
        tensor, arch = self.parallel.tensor, self.card.architecture
        if self.parallel.data_attention:
            return float(tensor)
        return 1.0 if arch.latent else float(min(tensor, arch.kv_heads))


def make(
    card: ModelCard,
    accelerator: Accelerator,
    *,
    weights: str = "bf16",
    kv: str = "bf16",
    parallel: Parallel | None = None,
    engine: EngineSettings | None = None,
    speculation: Speculation | None = None,
) -> Replica:
    """A replica by format names. Raises UnknownName or BadValue."""
    return Replica(
        card,
        accelerator,
        weight_format(weights),
        kv_format(kv),
        parallel or Parallel(),
        engine or EngineSettings(),
        speculation,
    )
