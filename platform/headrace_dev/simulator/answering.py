"""Scripted answers that are not streams: a whole completion, a refusal, a page, raw segments."""

import base64
import json
import time
from typing import Any

from headrace_dev.simulator.chunks import FULL_MESSAGE, error_body
from headrace_dev.simulator.run import EVENT_STREAM, JSON, Run
from headrace_dev.simulator.seen import How
from headrace_dev.simulator.streaming import Dropped, ended, wait
from headrace_dev.simulator.texts import Texts
from headrace_dev.simulator.writing import Writer


async def answer(run: Run, writer: Writer) -> How:
    """Generate silently, then send the completion. Raises Dropped."""
    script = run.script
    if script.headers_only:
        await writer.start(200, JSON)
    await silence(run, None if script.headers_only else run.first_at)
    if script.queue_full and not run.ending:
        await writer.whole(503, JSON, error_body(FULL_MESSAGE, 503, "503"))
        return "refused"
    how = await generate(run)
    if how in {"closed_by_client", "reset"}:
        return how
    if how == "failed":
        await writer.whole(500, JSON, error_body("The engine failed. " + "x" * script.pad, 500, "InternalServerError"))
        return how
    body = json.dumps(completion(run, "abort" if how == "aborted" else run.finish_reason), ensure_ascii=False)
    await writer.whole(200, JSON, body.encode("utf-8", "surrogatepass"))
    if not run.gone:
        run.entry.tokens_sent = run.entry.tokens_generated
    return how


async def generate(run: Run) -> How:
    script = run.script
    total = run.tokens + run.tool_tokens
    for step in range(total + 1):
        if script.stall_after == step:
            await silence(run, None)
        if script.drop_after == step:
            raise Dropped
        if script.error_event_after == step:
            return "failed"
        if step < total:
            await silence(run, run.due(step))
        if run.ending:
            return ended(run)
        if step < total:
            run.entry.tokens_generated += run.n
    return "finished"


async def silence(run: Run, until: float | None) -> None:
    while await run.pause(until) is not None:
        pass


def completion(run: Run, reason: str | None) -> dict[str, Any]:
    script, texts = run.script, Texts(run.script)
    each = run.entry.tokens_generated // run.n
    reasoning = min(each, script.reasoning)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": texts.run(reasoning, min(each, run.tokens)),
        "reasoning_content": texts.run(0, reasoning) if reasoning else None,
    }
    if run.tools:
        message["tool_calls"] = [
            {
                "id": f"call_{number:024d}",
                "index": number,
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(piece or "" for piece in call.arguments)},
            }
            for number, call in enumerate(run.tools)
        ]
    choices: Any = [
        {
            "index": index,
            "message": message,
            "logprobs": None,
            "finish_reason": reason,
            "matched_stop": 2 if reason == "stop" else None,
        }
        for index in range(run.n)
    ]
    result = {"id": run.rid, "object": "chat.completion", "created": int(time.time()), "model": run.model}
    if script.choices_empty != "missing":
        result["choices"] = {"no": choices, "empty": [], "null": None}[script.choices_empty]
    if script.usage in {"null", "null_zero"}:
        result["usage"] = None
    elif script.usage != "none":
        result["usage"] = json.loads(run.usage.figures(run.entry.tokens_generated, reasoning * run.n))
    return result


async def refuse(run: Run, writer: Writer, status: int) -> How:
    """The script's `status`, `body`, `headers` and `retry_after`."""
    script = run.script
    await silence(run, run.first_at)
    if run.ending in {"close", "reset"}:
        return ended(run)
    body, kind = script.body, script.content_type
    if body is None:
        data = error_body("Refused as scripted. " + "x" * script.pad, status, str(status))
    elif isinstance(body, str):
        data, kind = body.encode(), kind or "text/plain; charset=utf-8"
    else:
        data = json.dumps(body).encode()
    headers = [(b"content-type", (kind or "application/json").encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in script.headers.items()]
    if script.retry_after is not None:
        headers.append((b"retry-after", script.retry_after.encode()))
    await writer.whole(status, headers, data)
    return "refused"


async def page(run: Run, writer: Writer) -> How:
    await silence(run, run.first_at)
    body = b"<!doctype html><title>Bad gateway</title><p>Not an answer.</p>" + b"x" * run.script.pad
    await writer.whole(200, [(b"content-type", b"text/html")], body)
    return "refused"


async def raw(run: Run, writer: Writer, segments: list[str]) -> How:
    await wait(run, writer, run.first_at)
    await writer.start(200, EVENT_STREAM if run.stream else JSON)
    for segment in segments:
        if run.ending:
            return ended(run)
        await writer.segment(base64.b64decode(segment))
    if run.script.linger_ms:
        await wait(run, writer, run.now() + run.script.linger_ms / 1000)
    await writer.finish()
    return "finished"
