"""SGLang's own server (0.5): names attempts by `rid`, salts its radix cache, reports running usage on every event."""

import re
from typing import Any

import msgspec

from engines.protocols.base import Attempt, Upstream
from engines.protocols.exposition import Exposition
from engines.protocols.reading import Reading, whole
from engines.protocols.tokenizing import Tokenizing

_LOADS = "/v1/loads?include=core"
_METRICS = "/metrics"
_WANTED = tuple(
    f"sglang:{name}"
    for name in (
        "num_running_reqs", "num_queue_reqs", "token_usage", "max_total_num_tokens", "cache_hit_rate",
        "gen_throughput", "num_retracted_requests_total", "generation_tokens_total",
    )
)  # fmt: skip


class _Rank(msgspec.Struct):
    """One data-parallel rank of `/v1/loads`."""

    num_running_reqs: int = 0
    num_waiting_reqs: int = 0
    num_waiting_uncached_tokens: int | None = None
    max_total_num_tokens: int | None = None
    token_usage: float = 0.0
    gen_throughput: float = 0.0
    cache_hit_rate: float = 0.0
    total_prefill_uncached_tokens: float | None = None


class _Loads(msgspec.Struct):
    loads: list[_Rank]


class _About(msgspec.Struct):
    has_image_understanding: bool | None = None
    has_audio_understanding: bool | None = None
    architectures: list[str] | None = None


_about = msgspec.json.Decoder(_About)
# Models whose parts that see and hear are not where SGLang looks for them are called so.
_MAY_TAKE_MEDIA = re.compile(r"VL|MM|Omni|Vision|Audio|ForConditionalGeneration")
_loads = msgspec.json.Decoder(_Loads)


class SGLang(Tokenizing):
    name = "sglang"
    load_paths = (_LOADS,)
    slow_path = _METRICS
    about_paths = ("/model_info", "/get_model_info")

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        body = super().body(upstream, fields, attempt)
        body["rid"] = attempt.rid
        if attempt.salt is not None:
            body["cache_salt"] = attempt.salt
        if upstream.orders_by_priority and attempt.priority is not None:
            body["priority"] = attempt.priority
        return body

    def streams_whole(self, n: int) -> bool:
        # One that is aborted by its name ends a whole answer and tells what it took. The name does not reach the copies
        # of n > 1.
        return n > 1

    def headers(self, attempt: Attempt) -> dict[str, str]:
        # Its own metrics by tenant, where it runs with --tokenizer-metrics-custom-labels-header.
        return {"x-custom-labels": msgspec.json.encode({"tenant": attempt.tenant}).decode()}

    def abort_request(self, upstream: Upstream, rid: str) -> tuple[str, dict[str, str], bytes] | None:
        # With --admin-api-key set, abort takes only that key.
        key = upstream.admin_key or upstream.api_key
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        return f"{upstream.base_url}/abort_request", headers, msgspec.json.encode({"rid": rid})

    def read_load(self, answers: dict[str, bytes]) -> Reading:
        """`/v1/loads`; servers without it tell nearly as much on `/metrics`, and all tell retractions only there."""
        reading = Reading()
        if (body := answers.get(_LOADS)) is not None:
            reading = _of_ranks(_loads.decode(body).loads)
        if (body := answers.get(_METRICS)) is not None:
            reading = reading.completed(_of_metrics(Exposition(body.decode(), _WANTED)))
        return reading

    def read_lacks(self, about: bytes) -> frozenset[str]:
        """It says of images and sound whether the model takes them; one that takes no images takes no video.

        It looks at the head of the model's configuration, so that its no is not believed of models that take several
        kinds, or that are called as if they did.
        """
        said = _about.decode(about)
        if any(map(_MAY_TAKE_MEDIA.search, said.architectures or ())):
            return frozenset()
        if said.has_image_understanding is False and not said.has_audio_understanding:
            audio = {"audio"} if said.has_audio_understanding is False else set()
            return frozenset({"image", "video"} | audio)
        return frozenset()


def _of_ranks(ranks: list[_Rank]) -> Reading:
    """Ranks share the work: counts add up, shares weigh as much as the memory they are of."""
    if not ranks:
        return Reading()
    capacities = [rank.max_total_num_tokens for rank in ranks]
    known = [capacity for capacity in capacities if capacity]
    capacity = sum(known) if len(known) == len(ranks) else None
    weights = [(c or 0) / capacity if capacity else 1 / len(ranks) for c in capacities]
    tokens = [rank.num_waiting_uncached_tokens for rank in ranks]
    prefilled = [rank.total_prefill_uncached_tokens for rank in ranks]
    return Reading(
        running=sum(rank.num_running_reqs for rank in ranks),
        waiting=sum(rank.num_waiting_reqs for rank in ranks),
        waiting_tokens=None if None in tokens else sum(each or 0 for each in tokens),
        kv_used=sum(w * rank.token_usage for w, rank in zip(weights, ranks, strict=True)),
        kv_capacity=capacity,
        prefix_hit_rate=sum(w * rank.cache_hit_rate for w, rank in zip(weights, ranks, strict=True)),
        output_rate=sum(rank.gen_throughput for rank in ranks),
        prefilled_tokens=None if None in prefilled else sum(each or 0 for each in prefilled),
    )


def _of_metrics(page: Exposition) -> Reading:
    def total(name: str) -> float | None:
        # With priorities on, the series `priority=""` is the total; each tensor-parallel rank tells the same.
        return page.sum(f"sglang:{name}", priority="", tp_rank="0")

    running = total("num_running_reqs")
    # The counter is not there before the first retraction.
    retractions = total("num_retracted_requests_total") or (None if running is None else 0)
    return Reading(
        running=whole(running),
        waiting=whole(total("num_queue_reqs")),
        kv_used=page.mean("sglang:token_usage", priority="", tp_rank="0"),
        kv_capacity=whole(total("max_total_num_tokens")),
        prefix_hit_rate=page.mean("sglang:cache_hit_rate", priority="", tp_rank="0"),
        output_rate=total("gen_throughput"),
        output_tokens=total("generation_tokens_total"),
        retractions=whole(retractions),
    )
