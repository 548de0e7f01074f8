"""What the engine adds to the hardware: how much of the paper figures it reaches, and how it schedules."""

from dataclasses import dataclass, field

from engines.sizing.checks import within


@dataclass(frozen=True)
class EngineSettings:
    """Defaults describe SGLang on NVIDIA hardware. The efficiencies are the only fitted numbers of this package.

    memory_fraction: of a GPU's memory, for weights and KV together (SGLang --mem-fraction-static); the rest is for
    activations, CUDA graphs and communication buffers.
    bandwidth_efficiency: of the paper bandwidth that streaming kernels reach; 0.8 is what NVIDIA's planner uses
    (aiconfigurator, mem_bw_empirical_scaling_factor).
    compute_efficiency: of the dense peak that whole prefills reach. bf16 0.65 and fp8 0.45 are fitted to the first-
    token latencies of 2,048 tokens in TensorRT-LLM v0.5's performance.md (Llama 7B and 70B on A100 and H100); fp4
    0.35 is an extrapolation of that fall, fitted to nothing.
    expert_efficiency: what the products of routed experts reach of compute_efficiency: they are many small ones, and
    routing is uneven. Fitted to three rows of cards/published.json, marked there; the others show how rough it is.
    step_overhead, layer_overhead: seconds a step costs besides memory and arithmetic (scheduling, sampling, kernel
    launches and tails), fixed and per layer: set by judgement, neither fitted nor sourced.
    interconnect_efficiency: of a link's paper bandwidth that all-reduces reach: by judgement, below the 0.83 of a plain
    peer-to-peer copy on H100 (github.com/NVIDIA/nccl/issues/1264).
    collective_latency: seconds per all-reduce, whatever its size (8 us: cli99/llm-analysis, a100-sxm-40gb.json,
    intra_node_min_message_latency).
    chunk: prefill tokens a step may carry (SGLang --chunked-prefill-size). mixed: prefill chunks share a step with
    decoding (SGLang --enable-mixed-chunk; vLLM V1 and TensorRT-LLM always) instead of stopping it.
    """

    memory_fraction: float = 0.90
    bandwidth_efficiency: float = 0.80
    compute_efficiency: dict[str, float] = field(default_factory=lambda: {"bf16": 0.65, "fp8": 0.45, "fp4": 0.35})
    expert_efficiency: float = 0.40
    interconnect_efficiency: float = 0.70
    step_overhead: float = 0.0010
    layer_overhead: float = 0.000025
    collective_latency: float = 0.000008
    chunk: int = 8192
    mixed: bool = False
    max_running: int = 4096

    def __post_init__(self) -> None:
        within("memory_fraction", self.memory_fraction, 0.1, 0.99)
        within("bandwidth_efficiency", self.bandwidth_efficiency, 0.05, 1)
        within("chunk", self.chunk, 64, 1_048_576, unit="tokens")
        within("max_running", self.max_running, 1, 1_000_000)
        for name, value in self.compute_efficiency.items():
            within(f"compute_efficiency[{name}]", value, 0.01, 1)
