"""Asking a real SGLang: one streamed chat, timed; what it is; how many tokens a chat has."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec


class Work(msgspec.Struct, frozen=True):
    """One request: a user's message, sent at `at` seconds, answered with exactly `output` tokens."""

    at: float
    text: str
    output: int

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.text}]


class Seen(msgspec.Struct):
    """What came of it, in real seconds; `sent` since the beginning of the replay."""

    work: Work
    sent: float
    ttft: float
    tpot: float
    prompt: int
    cached: int


class Real:
    """A running SGLang at `url`. Needs --enable-cache-report."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=600, trust_env=False)

    async def info(self) -> dict[str, Any]:
        """Its settings. Raises httpx.HTTPError."""
        answer = await self._client.get("/server_info")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    async def tokens(self, work: Work) -> list[int]:
        """The prompt's tokens, chat template and all."""
        answer = await self._client.post("/tokenize", json={"model": "", "messages": work.messages})
        found: list[int] = answer.raise_for_status().json()["tokens"]
        return found

    async def flush(self) -> None:
        """Forget the prefix cache. Only an idle server does."""
        for _ in range(100):
            if (await self._client.post("/flush_cache")).status_code == 200:
                return
            await asyncio.sleep(0.2)
        raise httpx.HTTPError("the cache could not be flushed: the server is not idle")

    async def replay(self, works: Sequence[Work]) -> list[Seen]:
        began = time.monotonic()
        return list(await asyncio.gather(*(self._ask(work, began) for work in works)))

    async def _ask(self, work: Work, began: float) -> Seen:
        await asyncio.sleep(work.at - (time.monotonic() - began))
        body = {
            "model": "",
            "messages": work.messages,
            "max_tokens": work.output,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        sent, first, last = time.monotonic(), 0.0, 0.0
        usage: dict[str, Any] = {}
        async with self._client.stream("POST", "/v1/chat/completions", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    raise httpx.HTTPError(str(event["error"]))
                usage = event.get("usage") or usage
                if event["choices"] and event["choices"][0]["delta"].get("role") is None:
                    last = time.monotonic()
                    first = first or last
        tokens = usage["completion_tokens"]
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        tpot = (last - first) / max(1, tokens - 1)
        return Seen(work, sent - began, first - sent, tpot, usage["prompt_tokens"], cached)

    async def close(self) -> None:
        await self._client.aclose()
