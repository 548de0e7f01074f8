"""Bytes of weights in a number format."""

from dataclasses import dataclass

from engines.sizing.checks import known
from engines.sizing.parameters import Parameters

BF16_BYTES = 2.0


@dataclass(frozen=True)
class WeightFormat:
    """`bits` per quantised parameter, scales included; `experts_only`: attention and dense parts stay bf16.

    `compute` is the format matrix products run in where the accelerator has it: weight-only formats are widened to
    bf16 before the product, so they save memory and bandwidth, not arithmetic."""

    name: str
    bits: float
    compute: str
    experts_only: bool
    cost: str


FORMATS = {
    each.name: each
    for each in (
        WeightFormat("bf16", 16, "bf16", False, "nothing: the reference"),
        # DeepSeek-V3 report, arXiv:2412.19437 section 3.3: one fp32 scale per 128 x 128 block.
        WeightFormat("fp8", 8 + 32 / 128**2, "fp8", False, "a little accuracy, usually within noise; check your evals"),
        # GPTQ / AWQ with groups of 128: a 16-bit scale and a 4-bit zero per group, weights widened to bf16.
        WeightFormat("int4", 4 + 20 / 128, "bf16", False, "accuracy, more on small models; no faster prefill"),
        # OCP microscaling: 4-bit values, one 8-bit scale per 32; gpt-oss keeps all but its experts in bf16.
        WeightFormat("mxfp4", 4 + 8 / 32, "mx", True, "as trained by the publisher; only the experts are 4-bit"),
        # NVFP4: 4-bit values, one 8-bit scale per 16.
        WeightFormat("nvfp4", 4 + 8 / 16, "fp4", False, "accuracy, and needs FP4 units (Blackwell) to be fast"),
    )
}


@dataclass(frozen=True)
class WeightBytes:
    """Bytes of each part over the whole model. Embedding, head, norms and router stay bf16 in every format, as the
    published quantised checkpoints leave them (their `modules_to_not_convert` and `ignore` lists)."""

    embedding: float
    head: float
    common: float  # attention, dense MLPs, shared experts, norms and router: read for every step
    routed: float

    @property
    def total(self) -> float:
        return self.embedding + self.head + self.common + self.routed


def weight_format(name: str) -> WeightFormat:
    return FORMATS[known("weight format", name, FORMATS)]


def weight_bytes(parameters: Parameters, form: WeightFormat) -> WeightBytes:
    """bytes = parameters x bits / 8 for the quantised part, 2 per parameter for the rest."""
    quantised = form.bits / 8
    plain = BF16_BYTES if form.experts_only else quantised
    return WeightBytes(
        embedding=parameters.embedding * BF16_BYTES,
        head=parameters.head * BF16_BYTES,
        common=(parameters.attention + parameters.dense) * plain + (parameters.norms + parameters.router) * BF16_BYTES,
        routed=parameters.routed * quantised,
    )
