"""One tenant's attack, until standard input ends; prints how many of each kind were made, as JSON.

`main` runs in a process of its own (RUN), so that what it costs to attack is no part of what the victim's client
measures.
"""

import asyncio
import json
import secrets
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from headrace_dev.testing.clients import Caller, head, request
from headrace_dev.testing.upstream import prompt
from headrace_dev.testing.world import World

PAUSE = 0.1  # seconds of an attacker's client between two requests
CLIENTS = 3  # of each kind
_GIANT = b"x" * (7 * 2**20)
# For `python -c`, with the gateway's address, a model and a key behind it.
RUN = "import django; django.setup(); from headrace.tests.chaos import attacker; attacker.main()"
Attack = Callable[[Caller, World], Awaitable[None]]


class Door(World):
    """A world as a client knows it: a model's name and a key."""

    def __init__(self, model: str, secret: str) -> None:
        self.model, self.secret = model, secret


async def attack(url: str, door: World) -> Counter[str]:
    """Attack until standard input ends; how many of each kind."""
    done, over = Counter[str](), asyncio.Event()
    kinds = (_broken_stream, _refused_stream, _giant_body, _leaving, _odd_request)
    attacks = [asyncio.create_task(_again_and_again(kind, url, door, done, over)) for kind in kinds * CLIENTS]
    await asyncio.to_thread(sys.stdin.read)
    over.set()
    await asyncio.gather(*attacks)
    return done


async def _again_and_again(kind: Attack, url: str, door: World, done: Counter[str], over: asyncio.Event) -> None:
    while not over.is_set():
        caller = await Caller.to(url)
        try:
            async with asyncio.timeout(20):
                await kind(caller, door)
            done[kind.__name__] += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            done["cut"] += 1
        finally:
            await caller.leave(reset=True)
        await asyncio.sleep(PAUSE)


async def _stream(caller: Caller, door: World, **script: object) -> None:
    await caller.ask(door, content=prompt(**script) + secrets.token_hex(8), stream=True, max_tokens=50)
    answer = await caller.head()
    if answer.status != 200:
        await caller.error()
        return
    while (data := await caller.event()) != "[DONE]" and not data.startswith('{"error":'):
        continue


async def _broken_stream(caller: Caller, door: World) -> None:
    await _stream(caller, door, tokens=20, interval_ms=5, drop_after=3)


async def _refused_stream(caller: Caller, door: World) -> None:
    await _stream(caller, door, tokens=20, interval_ms=5, error_event_after=0)


async def _giant_body(caller: Caller, door: World) -> None:
    """As large as the gateway takes, and longer than any model's window."""
    begin, end = json.dumps(door.body(content="|", max_tokens=50)).encode().split(b"|")
    await caller.send(head(door, length=len(begin) + len(_GIANT) + len(end)))
    for part in (begin, _GIANT, end):
        await caller.send(part)
    await caller.head()


async def _leaving(caller: Caller, door: World) -> None:
    content = prompt(tokens=50, interval_ms=10) + secrets.token_hex(8)
    await caller.ask(door, content=content, stream=True, max_tokens=50)
    await caller.head()
    await caller.event()


async def _odd_request(caller: Caller, door: World) -> None:
    fields: dict[str, Any] = {"logit_bias": {str(number): 1 for number in range(10_000)}, "stop": ["x"] * 5}
    await caller.send(request(door, **fields))
    await caller.head()


def main() -> None:
    url, model, secret = sys.argv[1:]
    print(json.dumps(asyncio.run(attack(url, Door(model, secret)))))
