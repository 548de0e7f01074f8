"""`bench queries-of-death`: how many replicas a request reaches that breaks each engine it comes to."""

import asyncio
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.contestants import Headrace
from headrace_dev.bench.document import document
from headrace_dev.bench.installation import Installation
from headrace_dev.simulator.process import ScriptedUpstream, prompt

_MOST = 2
_MODEL = "model"
# How an engine breaks at a request; each with a prompt of its own.
_FORMS: dict[str, dict[str, Any]] = {
    "before a byte": {"no_answer": True},
    "after its headers": {"drop_after": 0, "headers_first": True},
    "in its answer": {"drop_after": 2},
    "behind a proxy": {"status": 502},
}
_VARIATIONS: tuple[dict[str, Any], ...] = ({}, {"max_tokens": 7}, {"user": "somebody"}, {"seed": 1}, {"temperature": 0})


class QueriesOfDeath(Benchmark):
    name = "queries-of-death"
    help = "How many of N replicas a request reaches at which engines break, by itself and with its client's retries."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--replicas", type=int, default=8)
        parser.add_argument("--retries", type=int, default=10, help="of the client, with trivial variations")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        replicas, retries = options["replicas"], options["retries"]
        with ExitStack() as stack:
            fleet = [stack.enter_context(ScriptedUpstream(model=_MODEL, tokens=5)) for _ in range(replicas)]
            described, [key] = document(1, upstream=fleet[0].url, model=_MODEL)
            described["pools"][0]["replicas"] = [each.url for each in fleet]
            installation = Installation(described)
            stack.callback(installation.stop)
            installation.start()
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
            web = Headrace("uvicorn", installation, logs, tenants=1, keys=[key])
            stack.callback(web.stop)
            url = f"http://127.0.0.1:{web.start()}"
            rows = []
            for form, script in _FORMS.items():
                for stream in (True, False):
                    rows.append(asyncio.run(_measure(url, key, fleet, form, script, stream=stream, retries=retries)))
                    say(str(rows[-1]))
        before = max(row["replicas reached"] for row in rows)
        after = max(row["with retries"] for row in rows)
        return Report(
            self.name,
            {"replicas": replicas, "retries": retries},
            rows,
            [
                Target("replicas that one request reached", before, _MOST),
                Target("replicas that it reached with its client's retries", after, _MOST),
                Target("harmless requests served after it, of 1", min(row["harmless"] for row in rows), 1, True),
            ],
            [f"Of {replicas} replicas, each of which breaks at it. `refused`: of {retries} retries, answered 400."],
        )


async def _measure(
    url: str, key: str, fleet: list[ScriptedUpstream], form: str, script: dict[str, Any], *, stream: bool, retries: int
) -> dict[str, Any]:
    for upstream in fleet:
        upstream.reset()
    text = prompt(f"{form} {stream}", **script)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        await _ask(client, key, text, stream=stream)
        before = _reached(fleet)
        statuses = [
            await _ask(client, key, text, stream=stream, **_VARIATIONS[number % len(_VARIATIONS)])
            for number in range(retries)
        ]
        after = _reached(fleet)
        harmless = await _ask(client, key, f"harmless {form} {stream}", stream=stream)
    return {
        "broken": form,
        "answer": "streamed" if stream else "whole",
        "replicas reached": before,
        "with retries": after,
        "refused": statuses.count(400),
        "harmless": int(harmless == 200),
    }


async def _ask(client: httpx.AsyncClient, key: str, text: str, **fields: Any) -> int:
    body = {"model": _MODEL, "messages": [{"role": "user", "content": text}], **fields}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    answer = await client.post("/v1/chat/completions", content=json.dumps(body), headers=headers)
    return answer.status_code


def _reached(fleet: list[ScriptedUpstream]) -> int:
    return sum(bool(upstream.requests()) for upstream in fleet)
