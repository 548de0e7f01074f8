"""A fleet of simulated SGLang replicas over HTTP, one port each, in one process and in scaled real time:

    python -m headrace_dev.simulator.fleet.serve --profile FILE --replicas 8 [--port 31000] [--scale 1.0]

`--scale 2` lets a simulated second take two real ones: slower than life where one machine has to carry the clients and
a gateway beside. Each replica answers POST /v1/chat/completions, /abort_request, /tokenize, /flush_cache; GET /health,
/ready, /v1/models, /v1/loads, /metrics. Any of them answers for all: GET /control/stats, POST /control/reset.
"""

import argparse
import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from headrace_dev.simulator.chat import read
from headrace_dev.simulator.fleet import surface
from headrace_dev.simulator.fleet.chat import chat
from headrace_dev.simulator.fleet.profile import load
from headrace_dev.simulator.fleet.served import ServedReplica
from headrace_dev.simulator.fleet.state import Fleet
from headrace_dev.simulator.scripted import respond
from headrace_dev.simulator.surface import Answer, decoded
from headrace_dev.simulator.writing import Message, Receive, Send


class ReplicaApp:
    """The ASGI application of one replica of `fleet`."""

    def __init__(self, fleet: Fleet, index: int) -> None:
        self._fleet, self._index = fleet, index

    @property
    def _replica(self) -> ServedReplica:
        return self._fleet.replicas[self._index]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path == "/v1/chat/completions" and method == "POST":
            await chat(receive, send, self._replica)
            return
        raw = await read(receive)
        if raw is None:
            return
        try:
            status, body = await self._answer(method, path, raw)
        except ValueError as error:
            status, body = 400, {"object": "error", "message": str(error), "type": "Bad Request", "code": 400}
        await respond(send, status, body)

    async def _answer(self, method: str, path: str, raw: bytes) -> Answer:
        if method == "POST":
            if path == "/abort_request":
                return surface.abort(self._replica, decoded(raw))
            if path in {"/tokenize", "/v1/tokenize"}:
                return surface.tokenize(decoded(raw))
            if path == "/flush_cache":
                self._replica.scheduler.cache.clear()
                return 200, "Cache flushed.\n"
            if path == "/control/reset":
                await self._fleet.reset()
                return 200, {}
        elif method == "GET":
            if path in {"/health", "/health_generate", "/ready", "/ping"}:
                return 200, None
            if path == "/v1/loads":
                return surface.loads(self._replica)
            if path == "/metrics":
                return surface.metrics(self._replica, self._fleet.model)
            if path == "/v1/models":
                return surface.models(self._replica, self._fleet.model)
            if path == "/control/stats":
                return 200, self._fleet.stats()
        return 404, {"detail": "Not Found"}


class Server(uvicorn.Server):
    """One of several in a process: signals are the process's affair."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(fleet: Fleet, listeners: list[socket.socket], *, until_stdin_closes: bool) -> None:
    fleet.start()
    servers = [
        Server(
            uvicorn.Config(
                ReplicaApp(fleet, index),
                lifespan="off",
                ws="none",
                log_level="critical",
                access_log=False,
                backlog=8192,
                timeout_keep_alive=600,
                timeout_graceful_shutdown=0,
            )
        )
        for index in range(len(listeners))
    ]

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(0, 1) else stop())
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection of 10 ms makes every replica's step late; `reset` makes up for it
    serving = [server.serve(sockets=[one]) for server, one in zip(servers, listeners, strict=True)]
    await asyncio.gather(*serving)
    await fleet.stop()


def listening(arguments: argparse.Namespace) -> list[socket.socket]:
    if arguments.fds:
        return [socket.socket(fileno=int(each)) for each in arguments.fds.split(",")]
    found = []
    for number in range(arguments.replicas):
        port = arguments.port + number if arguments.port else 0
        found.append(socket.create_server((arguments.host, port), backlog=8192))
        print(f"http://{arguments.host}:{found[-1].getsockname()[1]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", type=Path, required=True, help="JSON: headrace_dev/simulator/fleet/profile.py")
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--scale", type=float, default=1.0, help="real seconds a simulated second takes")
    parser.add_argument("--model", default="simulated")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=31000, help="the first; 0: any free ones, printed")
    parser.add_argument("--fds", default="", help="inherited listening sockets instead of ports")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when whoever started this is gone")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listeners = listening(arguments)
    fleet = Fleet(load(arguments.profile), len(listeners), scale=arguments.scale, model=arguments.model)
    with asyncio.Runner(loop_factory=uvicorn.Config("", loop="uvloop").get_loop_factory()) as runner:
        runner.run(serve(fleet, listeners, until_stdin_closes=arguments.until_stdin_closes))


if __name__ == "__main__":
    main()
