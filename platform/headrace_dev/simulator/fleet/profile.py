"""What a simulated replica is: how much it holds, how it schedules, and what a step costs."""

from pathlib import Path

import msgspec

# Of SGLang 0.5.23 (srt/environ.py, srt/managers/schedule_policy.py): how much of the output still allowed to running
# requests is kept free for them, falling while nothing is retracted.
RATIO_AT_FIRST = 0.7
RATIO_AT_LEAST = 0.7 * 0.14
RATIO_STEPS = 600
CLIPPED_OUTPUT = 4096  # tokens of output a request is reserved at most
PREEMPTION_THRESHOLD = 10  # --priority-scheduling-preemption-threshold


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. A step that computes T tokens, of which D decode over K tokens of context, takes

        step + max(weights, token x T) + sequence x D + context x K + attention x (pairs of prompt tokens) + prefix x P

    step: launches, scheduling; weights: streaming them once; token: the matrix products of one token; sequence:
    sampling and bookkeeping of a decoding request; context: reading the KV of one token; attention: one prompt token
    attending to one before it; prefix: one of the P cached tokens that what is read comes after, where a backend takes
    them up again (torch_native, on CPUs, pads the queries by them); before: from a request's arrival to the scheduler
    (HTTP, tokenizer), no part of a step.
    """

    step: float
    weights: float
    token: float
    sequence: float = 0.0
    context: float = 0.0
    attention: float = 0.0
    prefix: float = 0.0
    before: float = 0.0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of replica. `kv_tokens` fit in its cache, in blocks of `page`; `source` says where the costs are from.

    chunk: prompt tokens a step may compute (--chunked-prefill-size); max_prefill: of all prompts begun in one step
    (--max-prefill-tokens); max_running, max_queued: requests (--max-running-requests, --max-queued-requests).
    """

    name: str
    source: str
    costs: Costs
    kv_tokens: int
    page: int = 16
    chunk: int = 8192
    max_prefill: int = 16384
    max_running: int = 256
    max_queued: int | None = None

    @property
    def blocks(self) -> int:
        return self.kv_tokens // self.page


def load(path: Path) -> Profile:
    """Raises msgspec.ValidationError."""
    return msgspec.json.decode(path.read_bytes(), type=Profile)
