"""Connections that are gone leave nothing in memory, however they ended."""

import asyncio
import gc

import msgspec
from aiohttp.client_proto import ResponseHandler

from engines.client import Client
from engines.protocols import PROTOCOLS, Upstream
from headrace_dev.simulator.process import ScriptedUpstream, prompt


async def test_it_keeps_no_connection_that_was_lost() -> None:
    client = Client()
    with ScriptedUpstream(tokens=1000, interval_ms=5) as simulated:
        upstream = Upstream(protocol=PROTOCOLS["sglang"], base_url=simulated.url, model="scripted")

        async def ask(**script: object) -> None:
            messages = [{"role": "user", "content": prompt(**script)}]
            body = msgspec.json.encode({"messages": messages, "stream": True})
            answer = await client.chat(upstream, body, connect_timeout=5)
            await answer.read()
            await answer.close()

        for _ in range(10):
            for script in ({}, {"drop_after": 1}, {"tokens": 1, "interval_ms": 0}):
                await ask(**script)
        simulated.wait_until_idle()
    await client.close()
    await asyncio.sleep(0.1)
    gc.collect()
    assert [kept for kept in gc.get_objects() if isinstance(kept, ResponseHandler)] == []
