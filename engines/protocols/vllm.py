"""vLLM's server: as SGLang's, but an attempt is named by `request_id` and ends with its connection."""

from typing import Any

from engines.protocols.base import Attempt, Upstream
from engines.protocols.exposition import Exposition
from engines.protocols.reading import Reading, whole
from engines.protocols.tokenizing import Tokenizing

_METRICS = "/metrics"
_WANTED = tuple(
    f"vllm:{name}"
    for name in (
        "num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "gpu_cache_usage_perc",
        "cache_config_info", "prefix_cache_queries_total", "prefix_cache_hits_total",
        "gpu_prefix_cache_queries_total", "gpu_prefix_cache_hits_total", "generation_tokens_total",
        "num_preemptions_total",
    )
)  # fmt: skip


class VLLM(Tokenizing):
    name = "vllm"
    load_paths = (_METRICS,)

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        body = super().body(upstream, fields, attempt)
        body["request_id"] = attempt.rid
        if attempt.salt is not None:
            body["cache_salt"] = attempt.salt
        if upstream.orders_by_priority and attempt.priority is not None:
            body["priority"] = -attempt.priority  # here the lower goes first
        return body

    def read_load(self, answers: dict[str, bytes]) -> Reading:
        """Its page of metrics, of the V1 engine and of the one before. A preemption is what SGLang calls retraction."""
        if (body := answers.get(_METRICS)) is None:
            return Reading()
        page = Exposition(body.decode(), _WANTED)
        return Reading(
            running=whole(page.sum("vllm:num_requests_running")),
            waiting=whole(page.sum("vllm:num_requests_waiting")),
            kv_used=page.mean("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
            kv_capacity=_capacity(page),
            prompt_tokens=page.sum("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
            cached_tokens=page.sum("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
            output_tokens=page.sum("vllm:generation_tokens_total"),
            retractions=whole(page.sum("vllm:num_preemptions_total")),
        )


def _capacity(page: Exposition) -> int | None:
    """Tokens: blocks of `block_size`, told as labels, once for each of its engines."""
    sizes = [
        int(labels["num_gpu_blocks"]) * int(labels["block_size"])
        for labels in page.labels("vllm:cache_config_info")
        if labels.get("num_gpu_blocks", "").isdecimal() and labels.get("block_size", "").isdecimal()
    ]
    return sum(sizes) or None
