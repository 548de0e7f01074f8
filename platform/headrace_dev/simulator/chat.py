"""POST /v1/chat/completions: from a request to its run, and the watch for its client."""

import asyncio
import socket
import struct
from typing import Any

import msgspec

from headrace_dev.simulator import answering, prefix, script
from headrace_dev.simulator.chunks import error_body
from headrace_dev.simulator.run import JSON, Run
from headrace_dev.simulator.seen import BODY_KEPT, Entry, How
from headrace_dev.simulator.state import State
from headrace_dev.simulator.streaming import Dropped, stream
from headrace_dev.simulator.writing import Message, Receive, Send, Writer

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


async def read(receive: Receive) -> bytes | None:
    """The request's body, None when the client left before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def chat(scope: Message, receive: Receive, send: Send, state: State) -> None:
    entry = Entry(path=scope["path"], headers=state.headers(scope))
    raw = await read(receive)
    if raw is None:
        return
    try:
        run = prepare(raw, entry, state)
    except ValueError as error:
        entry.how = "refused"
        state.seen.note(entry)
        kind = "BadRequestError" if isinstance(error, (Refused, script.BadScript)) else "Bad Request"
        await Writer(send, script.Script()).whole(400, JSON, error_body(str(error), 400, kind))
        return
    await serve(run, scope, receive, send, state)


class Refused(ValueError):
    """A request SGLang answers with 400."""


def prepare(raw: bytes, entry: Entry, state: State) -> Run:
    """Raises ValueError for what SGLang answers with a 400."""
    try:
        body = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ValueError(f"1 validation error:\n  {{'type': 'json_invalid', 'msg': '{error}'}}") from error
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise ValueError("1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages')}")
    entry.body = body if len(raw) <= BODY_KEPT else {"bytes": len(raw)}
    entry.stream = body.get("stream") is True
    texts = prefix.contents(body["messages"])
    told = script.embedded(texts[-1]) if texts else None
    told = state.completed(told or state.next_script())
    rid = body.get("rid")
    if rid in state.running:
        raise Refused(f"Duplicate request ID detected: {rid}")
    prompt = prefix.count(texts)
    if prompt > state.context:
        raise Refused(
            f"The input ({prompt} tokens) is longer than the model's context length ({state.context} tokens)."
        )
    salt = str(body.get("cache_salt") or body.get("extra_key") or "")
    cached = state.cache.take(prefix.rendered(texts), prompt, salt)
    run = Run(body, texts, told, entry, cached=cached)
    state.seen.tokens_prefilled += run.usage.prompt - min(run.usage.cached, run.usage.prompt)
    return run


async def serve(run: Run, scope: Message, receive: Receive, send: Send, state: State) -> None:
    transport = scope["headrace.transport"]
    writer = Writer(send, run.script)
    state.seen.begin(run.entry)
    state.running[run.rid] = run
    watch = asyncio.ensure_future(client_leaves(run, receive, state))
    how: How = "failed"
    try:
        how = await play(run, writer)
    except Dropped:
        how = "dropped"
        await writer.flush()
        drop(transport, run.script.drop)
    finally:
        watch.cancel()
        del state.running[run.rid]
        if run.gone and how == "finished":
            how = "closed_by_client"
        state.seen.end(run.entry, how)
        run.over.set()
    if how in {"closed_by_client", "reset"}:
        drop(transport, "reset")


async def play(run: Run, writer: Writer) -> How:
    told = run.script
    if told.no_answer:
        await answering.silence(run, run.first_at)
        raise Dropped
    if told.raw is not None:
        return await answering.raw(run, writer, told.raw)
    if told.status is not None:
        return await answering.refuse(run, writer, told.status)
    if told.html:
        return await answering.page(run, writer)
    return await (stream if run.stream else answering.answer)(run, writer)


async def client_leaves(run: Run, receive: Receive, state: State) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    state.seen.close_seen(run.entry)
    run.leave()


def drop(transport: Any, how: str) -> None:
    """End the connection: `close` sends what is buffered and a FIN, `reset` an RST."""
    if transport.is_closing():
        return
    if how == "reset":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()
    else:
        transport.close()
