"""A scripted upstream: SGLang's OpenAI surface without a model, fast, exact in its books, and able to misbehave.

    python -m headrace_dev.simulator.scripted --port 30000 [--tokens 100] [--interval-ms 5] [--first-ms 0]

What an answer does is said by a script (script.py lists its fields): in the request itself, which suits many at once,
or through the controls (control.py). POST /v1/chat/completions, /abort_request, /tokenize; GET /v1/models, /health,
/v1/loads, /metrics, /model_info. Request bodies and answers follow what SGLang 0.5.23 does, down to the order of
events.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headrace_dev.simulator import surface
from headrace_dev.simulator.chat import chat, read
from headrace_dev.simulator.control import control
from headrace_dev.simulator.seen import Entry, Seen
from headrace_dev.simulator.state import State
from headrace_dev.simulator.writing import Message, Receive, Send


class Scripted:
    """The ASGI application. Its server must be `Connection`, which counts connections and can drop them."""

    def __init__(self, state: State) -> None:
        self.state = state

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path == "/v1/chat/completions" and method == "POST":
            await chat(scope, receive, send, self.state)
            return
        raw = await read(receive)
        if raw is None:
            return
        try:
            status, body = await self.answer(scope, method, path, raw)
        except ValueError as error:
            status, body = 400, {"object": "error", "message": str(error), "type": "Bad Request", "code": 400}
        await respond(send, status, body)

    async def answer(self, scope: Message, method: str, path: str, raw: bytes) -> surface.Answer:
        state = self.state
        if path.startswith("/control/"):
            return await control(state, method, path.removeprefix("/control/"), raw)
        if method == "POST" and path in {"/tokenize", "/v1/tokenize"}:
            return surface.tokenize(state, surface.decoded(raw))
        if method == "POST" and path == "/abort_request":
            return surface.abort(state, surface.decoded(raw), Entry(path=path, headers=state.headers(scope)))
        if method == "GET" and path in {"/health", "/health_generate", "/ready", "/ping"}:
            return await surface.health(state)
        if method == "GET" and path == "/v1/models":
            return surface.models(state)
        if method == "GET" and path.startswith("/v1/models/"):
            return surface.one_model(state, path.removeprefix("/v1/models/"))
        if method == "GET" and path == "/v1/loads":
            return surface.loads(state)
        if method == "GET" and path == "/metrics":
            return surface.metrics(state)
        if method == "GET" and path in {"/model_info", "/get_model_info"}:
            return surface.about(state)
        if path in {"/v1/chat/completions", "/abort_request"}:
            return 405, {"detail": "Method Not Allowed"}
        return 404, {"detail": "Not Found"}


async def respond(send: Send, status: int, body: Any) -> None:
    data, kind = b"", b"application/json"
    if isinstance(body, str):
        data, kind = body.encode(), b"text/plain; charset=utf-8"
    elif body is not None:
        data = json.dumps(body).encode()
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": False})


def connections(state: State) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, counting connections and handing the transport to the application."""

    class Connection(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            state.seen.connections_open += 1
            state.seen.connections_total += 1

        def connection_lost(self, exc: Exception | None) -> None:
            state.seen.connections_open -= 1
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["headrace.transport"] = self.transport  # type: ignore[typeddict-unknown-key]

    return Connection


async def serve(state: State, listener: socket.socket, *, until_stdin_closes: bool) -> None:
    config = uvicorn.Config(
        Scripted(state),
        http=connections(state),
        lifespan="off",
        ws="none",
        log_level="critical",  # dropping a connection on purpose is an error to uvicorn
        access_log=False,
        backlog=8192,
        timeout_keep_alive=600,
        timeout_graceful_shutdown=0,
    )
    server = uvicorn.Server(config)
    if until_stdin_closes:
        asyncio.get_running_loop().add_reader(
            sys.stdin.fileno(), lambda: setattr(server, "should_exit", not os.read(0, 1))
        )
    gc.collect()
    gc.freeze()
    await server.serve(sockets=[listener])


def listening(arguments: argparse.Namespace) -> socket.socket:
    if arguments.fd is not None:
        return socket.socket(fileno=arguments.fd)
    listener = socket.create_server((arguments.host, arguments.port), backlog=8192)
    print(f"http://{arguments.host}:{listener.getsockname()[1]}", flush=True)
    return listener


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000, help="0: any free one, printed")
    parser.add_argument("--fd", type=int, help="an inherited listening socket instead of --port")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--interval-ms", type=float, default=0)
    parser.add_argument("--first-ms", type=float, default=0)
    parser.add_argument("--context", type=int, default=1_000_000, help="tokens; a longer prompt is a 400")
    parser.add_argument("--kept", type=int, default=1000, help="requests that GET /control/requests lists")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when whoever started this is gone")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    state = State(
        model=arguments.model,
        tokens=arguments.tokens,
        interval_ms=arguments.interval_ms,
        first_ms=arguments.first_ms,
        context=arguments.context,
        seen=Seen(kept=arguments.kept),
    )
    with asyncio.Runner(loop_factory=uvicorn.Config("", loop="uvloop").get_loop_factory()) as runner:
        runner.run(serve(state, listening(arguments), until_stdin_closes=arguments.until_stdin_closes))


if __name__ == "__main__":
    main()
