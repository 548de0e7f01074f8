"""POST /v1/chat/completions on a simulated replica, with the events of SGLang 0.5.23 (as recorded from it)."""

import asyncio
import json
import uuid
from typing import Any

import msgspec

from headrace_dev.simulator.chat import read
from headrace_dev.simulator.chunks import DONE, FULL_MESSAGE, Chunks, error_body
from headrace_dev.simulator.fleet import prompt
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.scheduler import QueueFull, TooLong
from headrace_dev.simulator.fleet.served import Run, ServedReplica
from headrace_dev.simulator.prefix import contents
from headrace_dev.simulator.run import EVENT_STREAM, JSON, whole_number
from headrace_dev.simulator.writing import BODY, Receive, Send

LONGEST = 32768  # output tokens, where a request names no most


class Refused(Exception):
    """An error answer instead of a generation."""

    def __init__(self, status: int, message: str, kind: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


async def chat(receive: Receive, send: Send, replica: ServedReplica) -> None:
    raw = await read(receive)
    if raw is None:
        return
    stream = False
    try:
        body = decoded(raw)
        stream = body.get("stream") is True
        run = prepared(body, replica)
        if replica.scheduler.profile.costs.before:
            await asyncio.sleep(replica.scheduler.profile.costs.before * replica.scale)
        enter(run, replica)
    except Refused as refused:
        await refuse(send, refused, stream=stream)
        return
    watch = asyncio.ensure_future(client_leaves(run, receive, replica))
    try:
        await (streamed if stream else whole)(run, body, send)
    finally:
        watch.cancel()
        if not run.is_over:
            replica.abort(run)


def decoded(raw: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise Refused(400, f"1 validation error: {error}", "Bad Request") from error
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        raise Refused(400, "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages')}", "Bad Request")
    return body


def prepared(body: dict[str, Any], replica: ServedReplica) -> Run:
    """The request of a chat's body. One choice only, whatever `n` says."""
    text = prompt.rendered(body["messages"])
    asked = body.get("max_completion_tokens", body.get("max_tokens"))
    most = max(1, whole_number(asked, LONGEST))
    output = prompt.said(contents(body["messages"])[-1]) or most
    answer = prompt.answer(text, min(output, most))
    salt = str(body.get("cache_salt") or body.get("extra_key") or "")
    request = Request(
        rid=str(body.get("rid") or uuid.uuid4().hex),
        chain=prompt.chain(text + answer.encode(), salt, replica.scheduler.profile.page),
        prompt=prompt.token_count(text),
        output=output,
        max_tokens=most,
        priority=whole_number(body.get("priority"), 0),
    )
    if request.rid in replica.runs:
        raise Refused(400, f"Duplicate request ID detected: {request.rid}", "BadRequestError")
    return Run(request, answer)


def enter(run: Run, replica: ServedReplica) -> None:
    try:
        replica.add(run)
    except TooLong as error:
        raise Refused(400, str(error), "BadRequestError") from error
    except QueueFull as error:
        raise Refused(503, FULL_MESSAGE, "503") from error


async def refuse(send: Send, refused: Refused, *, stream: bool) -> None:
    if stream and refused.status == 503:  # a full queue: 200, then an error event
        await send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        await send({"type": BODY, "body": Chunks.error(str(refused), 503) + DONE, "more_body": False})
        return
    data = error_body(str(refused), refused.status, refused.kind)
    await answer(send, refused.status, data)


async def answer(send: Send, status: int, data: bytes) -> None:
    headers = [*JSON, (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": BODY, "body": data, "more_body": False})


async def streamed(run: Run, body: dict[str, Any], send: Send) -> None:
    """One event a token; those that a late loop finds together are written together."""
    request = run.request
    options = body.get("stream_options") or {}
    continuous, include = options.get("continuous_usage_stats") is True, options.get("include_usage") is True
    chunks, texts = Chunks(request.rid, str(body.get("model") or "")), run.text
    sent, held = 0, chunks.role(0)
    while True:
        said = await run.news(sent)
        if held:
            await send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        parts = [held]
        for index in range(sent, said):
            text = b'"%b"' % texts[index * prompt.TOKEN : (index + 1) * prompt.TOKEN].encode()
            running = b',"usage":' + usage(request, index + 1) if continuous else b""
            parts.append(chunks.content(0, text, running))
        sent, held = said, b""
        if run.is_over:
            break
        await send({"type": BODY, "body": b"".join(parts), "more_body": True})
    parts.append(chunks.finish(0, request.finish, b""))
    if include:
        parts.append(chunks.usage(usage(request, sent)))
    await send({"type": BODY, "body": b"".join([*parts, DONE]), "more_body": False})


async def whole(run: Run, body: dict[str, Any], send: Send) -> None:
    request, said = run.request, 0
    while not run.is_over:
        said = await run.news(said)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": run.text[: request.generated * prompt.TOKEN]},
        "finish_reason": request.finish,
    }
    head = {"id": request.rid, "object": "chat.completion", "model": str(body.get("model") or ""), "choices": [choice]}
    data = json.dumps(head)[:-1].encode() + b',"usage":' + usage(request, request.generated) + b"}"
    await answer(send, 200, data)


def usage(request: Request, completion: int) -> bytes:
    return (
        b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":%d},"reasoning_tokens":0,"completion_tokens_details":null}'
    ) % (request.prompt, request.prompt + completion, completion, request.cached or 0)


async def client_leaves(run: Run, receive: Receive, replica: ServedReplica) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    replica.abort(run)
