"""The controls, beside the engine's surface and never part of it.

GET  /control/stats      counters (seen.Seen.stats)
GET  /control/requests   the last requests seen (--kept), aborts too
POST /control/script     one script object: the default from now on; a list: one for each coming request
POST /control/health     {"status": 503, "delay_ms": 0}
POST /control/loads      fields laid over /v1/loads
POST /control/about      fields of /model_info: {"has_image_understanding": false}
POST /control/reset      drop what runs, forget scripts, counters and cache
"""

import asyncio
from typing import Any

import msgspec

from headrace_dev.simulator import script
from headrace_dev.simulator.state import State
from headrace_dev.simulator.surface import Answer


async def control(state: State, method: str, name: str, raw: bytes) -> Answer:
    if method == "GET" and name == "stats":
        return 200, state.seen.stats()
    if method == "GET" and name == "requests":
        return 200, state.seen.listing()
    if method != "POST":
        return 404, {"detail": "Not Found"}
    body: Any = msgspec.json.decode(raw) if raw else {}
    if name == "script":
        if isinstance(body, list):
            state.queued.extend([script.convert(one) for one in body])
        else:
            state.script = script.convert(body)
    elif name == "health":
        state.health = dict(body)
    elif name == "loads":
        state.loads = dict(body)
    elif name == "about":
        state.about = dict(body)
    elif name == "reset":
        await reset(state)
    else:
        return 404, {"detail": "Not Found"}
    return 200, {}


async def reset(state: State) -> None:
    """Returns once nothing runs any more."""
    running = list(state.running.values())
    state.reset()
    await asyncio.gather(*(run.over.wait() for run in running))
    state.seen.clear()
