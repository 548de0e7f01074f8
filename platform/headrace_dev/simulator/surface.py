"""The rest of SGLang's surface: models, tokenizer, health, load, metrics, abort."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace_dev.simulator import prefix
from headrace_dev.simulator.seen import Entry
from headrace_dev.simulator.state import State

Answer = tuple[int, Any]  # status; None is an empty body, a string is plain text, anything else JSON


def models(state: State) -> Answer:
    return 200, {"object": "list", "data": [model(state)]}


def model(state: State) -> dict[str, Any]:
    return {
        "id": state.model,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": state.model,
        "parent": None,
        "max_model_len": state.context,
    }


def one_model(state: State, name: str) -> Answer:
    if name == state.model:
        return 200, model(state)
    message = f"The model '{name}' does not exist"
    return 404, {
        "error": {"message": message, "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    }


async def health(state: State) -> Answer:
    """200 at once, unless POST /control/health said otherwise."""
    await asyncio.sleep(float(state.health.get("delay_ms", 0)) / 1000)
    return int(state.health.get("status", 200)), None


def tokenize(state: State, body: dict[str, Any]) -> Answer:
    """`prompt` or `messages`, counted as a chat's prompt is (a bare prompt without the 4 of a message)."""
    if isinstance(body.get("prompt"), str):
        count = max(1, -(-len(body["prompt"].encode()) // 4))
    else:
        count = prefix.count(prefix.contents(body.get("messages")))
    return 200, {"tokens": list(range(count)), "count": count, "max_model_len": state.context}


def abort(state: State, body: dict[str, Any], entry: Entry) -> Answer:
    """200 whatever the rid; matched by prefix, as SGLang does."""
    rid = str(body.get("rid") or "")
    entry.body, entry.rid = body, rid
    state.seen.note(entry)
    state.seen.aborts += 1
    for run in list(state.running.values()):
        if body.get("abort_all") is True or (rid and run.rid.startswith(rid)):
            run.abort()
    return 200, None


def used_tokens(state: State) -> int:
    return sum(run.usage.prompt + run.entry.tokens_generated for run in state.running.values())


def loads(state: State) -> Answer:
    """GET /v1/loads: real counts, with the fields of POST /control/loads laid over them."""
    used, most = used_tokens(state), 65536
    core = {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": len(state.running),
        "num_waiting_reqs": 0,
        "num_waiting_uncached_tokens": 0,
        "num_used_tokens": used,
        "num_total_tokens": used,
        "max_total_num_tokens": most,
        "max_running_requests": 1024,
        "token_usage": round(min(1.0, used / most), 4),
        "gen_throughput": 0.0,
        "cache_hit_rate": 0.0,
        "total_prefill_uncached_tokens": state.seen.tokens_prefilled,
        **state.loads,
    }
    return 200, {"timestamp": datetime.now(UTC).isoformat(), "version": "0.5.23", "loads": [core]}


def about(state: State) -> Answer:
    """GET /model_info, and /get_model_info as it was called before: with the fields of POST /control/about."""
    return 200, {"model_path": state.model, "tokenizer_path": state.model, "is_generation": True, **state.about}


def metrics(state: State) -> Answer:
    aborted = state.seen.ended.get("aborted", 0) + state.seen.ended.get("closed_by_client", 0)
    core = loads(state)[1]["loads"][0]
    values = {
        "num_running_reqs": ("gauge", core["num_running_reqs"]),
        "num_queue_reqs": ("gauge", core["num_waiting_reqs"]),
        "token_usage": ("gauge", core["token_usage"]),
        "max_total_num_tokens": ("gauge", core["max_total_num_tokens"]),
        "num_aborted_requests_total": ("counter", aborted),
        "generation_tokens_total": ("counter", state.seen.tokens_generated),
    }
    lines = []
    for name, (kind, value) in values.items():
        lines.append(f'# TYPE sglang:{name} {kind}\nsglang:{name}{{model_name="{state.model}"}} {float(value)}\n')
    return 200, "".join(lines)


def decoded(raw: bytes) -> dict[str, Any]:
    """Raises ValueError unless the body is a JSON object."""
    body = msgspec.json.decode(raw) if raw else {}
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")
    return body
