"""SGLang's surface beside chat, of one simulated replica: load, metrics, models, abort."""

import time
from datetime import UTC, datetime
from typing import Any

from headrace_dev.simulator.fleet import prompt
from headrace_dev.simulator.fleet.served import ServedReplica
from headrace_dev.simulator.surface import Answer


def loads(replica: ServedReplica) -> Answer:
    """GET /v1/loads, its core fields; always current (a real one lags without --load-snapshot-publish-interval 1)."""
    return 200, {"timestamp": datetime.now(UTC).isoformat(), "version": "0.5.23", "loads": [core(replica)]}


def core(replica: ServedReplica) -> dict[str, Any]:
    held, counters, profile = replica.scheduler, replica.scheduler.counters, replica.scheduler.profile
    used = held.used_tokens
    return {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": held.running_count,
        "num_waiting_reqs": len(held.waiting),
        "num_waiting_uncached_tokens": held.waiting_tokens,
        "num_used_tokens": used,
        "num_total_tokens": used + sum(r.input for r in held.waiting),
        "max_total_num_tokens": profile.kv_tokens,
        "max_running_requests": profile.max_running,
        "token_usage": round(used / profile.kv_tokens, 4),
        "gen_throughput": round(counters.generated_tokens / max(replica.now, 1e-9), 2),
        "cache_hit_rate": round(counters.hit_tokens / max(1, counters.prompt_tokens), 4),
        "total_prefill_uncached_tokens": counters.prompt_tokens - counters.hit_tokens,
        "utilization": round(min(1.0, counters.busy_seconds / max(replica.now, 1e-9)), 4),
    }


def metrics(replica: ServedReplica, model: str) -> Answer:
    held, counters, load = replica.scheduler, replica.scheduler.counters, core(replica)
    page = held.profile.page
    values = {
        "num_running_reqs": ("gauge", load["num_running_reqs"]),
        "num_queue_reqs": ("gauge", load["num_waiting_reqs"]),
        "num_used_tokens": ("gauge", load["num_used_tokens"]),
        "kv_used_tokens": ("gauge", load["num_used_tokens"]),
        "kv_available_tokens": ("gauge", held.cache.free * page),
        "kv_evictable_tokens": ("gauge", held.cache.idle * page),
        "max_total_num_tokens": ("gauge", load["max_total_num_tokens"]),
        "token_usage": ("gauge", load["token_usage"]),
        "cache_hit_rate": ("gauge", load["cache_hit_rate"]),
        "gen_throughput": ("gauge", load["gen_throughput"]),
        "num_retracted_reqs": ("gauge", counters.retractions),
        "new_token_ratio": ("gauge", held.ratio),
        "num_requests_total": ("counter", counters.requests),
        "num_aborted_requests_total": ("counter", counters.aborted),
        "prompt_tokens_total": ("counter", counters.prompt_tokens),
        "cached_tokens_total": ("counter", counters.hit_tokens),
        "generation_tokens_total": ("counter", counters.generated_tokens),
    }
    lines = []
    for name, (kind, value) in values.items():
        lines.append(f'# TYPE sglang:{name} {kind}\nsglang:{name}{{model_name="{model}"}} {float(value)}\n')
    return 200, "".join(lines)


def models(replica: ServedReplica, model: str) -> Answer:
    told = {"id": model, "object": "model", "created": 0, "owned_by": "sglang", "root": model, "parent": None}
    return 200, {"object": "list", "data": [{**told, "max_model_len": replica.scheduler.profile.kv_tokens}]}


def tokenize(body: dict[str, Any]) -> Answer:
    if isinstance(body.get("prompt"), str):
        count = prompt.token_count(body["prompt"].encode())
    else:
        count = prompt.token_count(prompt.rendered(body.get("messages")))
    return 200, {"tokens": list(range(count)), "count": count}


def abort(replica: ServedReplica, body: dict[str, Any]) -> Answer:
    """200 whatever the rid; matched by prefix, as SGLang does."""
    rid = str(body.get("rid") or "")
    for run in list(replica.runs.values()):
        if body.get("abort_all") is True or (rid and run.request.rid.startswith(rid)):
            replica.abort(run)
    return 200, None
