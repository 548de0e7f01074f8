"""One tenant does what it can to be in everybody's way; another's requests all succeed meanwhile.

The time to the first token of the other is printed beside that of the same load on a quiet gateway. On a machine of its
own the two are within a fifth of each other; here, attacker, victim, gateway and upstream share a few processors, so no
figure of it is asserted.
"""

import asyncio
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from billing.models import Budget
from headrace.testing.clients import Caller, head, request
from headrace.testing.upstream import ScriptedUpstream, prompt
from headrace.testing.web import WebProcess
from headrace.testing.world import World
from tenants.models import Project

pytestmark = pytest.mark.chaos
SECONDS = 15
RATE = 8.0  # requests a second of the victim
BUDGETS = 100
PAUSE = 0.1  # seconds of an attacker's client between two requests: it has a few processors to attack with as well
_GIANT = b"x" * (7 * 2**20)
Attack = Callable[[Caller, World, str], Coroutine[Any, Any, None]]


@dataclass
class Heard:
    """How the victim's requests ended, and after how many seconds each began to be answered."""

    ends: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        ordered = sorted(self.first)
        p50, p99 = (ordered[int(len(ordered) * share)] * 1000 for share in (0.5, 0.99))
        return f"{dict(self.ends)}, TTFT p50 {p50:.1f} ms, p99 {p99:.1f} ms"


@pytest.fixture(scope="module")
def web(world: World) -> Iterator[WebProcess]:
    """Nobody reads its log: once the pipe is full, what it writes finds no room."""
    reader, writer = os.pipe()
    process = WebProcess(Path(f"/proc/self/fd/{writer}"), HEADRACE_LOG_LEVEL="INFO")
    os.close(writer)
    try:
        yield process.wait_ready(300)
    finally:
        process.kill()
        os.close(reader)


@pytest.fixture(scope="module")
def attacker(world: World) -> str:
    """A key of a tenant that has made all the soft budgets that it could think of."""
    tenant = world.add_tenant("mallory")
    project = Project.objects.create(tenant=tenant, slug="app", name="App")
    for number in range(BUDGETS):
        Budget.objects.create(tenant=tenant, name=f"b{number}", amount=Decimal(10**6), hard=False, period="total")
    return world.add_key(project)[1]


async def test_another_tenants_requests_all_succeed(
    web: WebProcess, world: World, attacker: str, upstream: ScriptedUpstream
) -> None:
    await asyncio.to_thread(world.wait_known, web, secret=attacker)
    await _victim(web, world, seconds=2)  # what is made at first use is made
    quiet = await _victim(web, world)
    done, over = Counter[str](), asyncio.Event()
    attacks = [
        asyncio.create_task(_again_and_again(attack, web, world, attacker, done, over))
        for attack in (_broken_stream, _refused_stream, _giant_body, _leaving, _odd_request)
        for _ in range(3)
    ]
    attacked = await _victim(web, world)
    over.set()
    await asyncio.gather(*attacks)
    print(f"quiet:    {quiet}\nattacked: {attacked}\nattacks:  {dict(done)}")
    assert set(quiet.ends) == {"DONE"}
    assert set(attacked.ends) == {"DONE"}, attacked
    assert min(done[attack.__name__] for attack in (_broken_stream, _refused_stream, _giant_body, _leaving)) > 0


async def _victim(web: WebProcess, world: World, *, seconds: float = SECONDS) -> Heard:
    """Streams at RATE, open loop: those that are slow do not keep the next from being asked."""
    heard, asking = Heard(), set[asyncio.Task[None]]()
    began = time.monotonic()
    for number in range(int(RATE * seconds)):
        await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
        asking.add(asyncio.create_task(_ask(web, world, heard)))
    await asyncio.gather(*asking)
    return heard


async def _ask(web: WebProcess, world: World, heard: Heard) -> None:
    caller = await Caller.to(web.url)
    try:
        began = time.monotonic()
        content = prompt(tokens=10, interval_ms=20) + secrets.token_hex(8)
        await caller.ask(world, content=content, stream=True, max_tokens=20)
        if (answer := await caller.head()).status != 200:
            heard.ends[f"{answer.status} {await caller.error()}"] += 1
            return
        is_first = True
        while (data := await caller.event()) != "[DONE]":
            if is_first:
                heard.first.append(time.monotonic() - began)
                is_first = False
            if data.startswith('{"error":'):
                heard.ends[data] += 1
                return
        heard.ends["DONE"] += 1
    except ConnectionError:
        heard.ends["cut"] += 1
    finally:
        await caller.leave()


# --- what the attacker does -------------------------------------------------------------------------------------------
async def _again_and_again(
    attack: Attack, web: WebProcess, world: World, secret: str, done: Counter[str], over: asyncio.Event
) -> None:
    while not over.is_set():
        caller = await Caller.to(web.url)
        try:
            async with asyncio.timeout(20):
                await attack(caller, world, secret)
            done[attack.__name__] += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            done["cut"] += 1
        finally:
            await caller.leave(reset=True)
        await asyncio.sleep(PAUSE)


async def _stream(caller: Caller, world: World, secret: str, **script: object) -> None:
    content = prompt(**script) + secrets.token_hex(8)
    await caller.ask(world, secret=secret, content=content, stream=True, max_tokens=50)
    answer = await caller.head()
    if answer.status != 200:
        await caller.error()
        return
    while (data := await caller.event()) != "[DONE]" and not data.startswith('{"error":'):
        continue


async def _broken_stream(caller: Caller, world: World, secret: str) -> None:
    await _stream(caller, world, secret, tokens=20, interval_ms=5, drop_after=3)


async def _refused_stream(caller: Caller, world: World, secret: str) -> None:
    await _stream(caller, world, secret, tokens=20, interval_ms=5, error_event_after=0)


async def _giant_body(caller: Caller, world: World, secret: str) -> None:
    """As large as the gateway takes, and longer than any model's window."""
    begin, end = json.dumps(world.body(content="|", max_tokens=50)).encode().split(b"|")
    await caller.send(head(world, secret=secret, length=len(begin) + len(_GIANT) + len(end)))
    for part in (begin, _GIANT, end):
        await caller.send(part)
    await caller.head()


async def _leaving(caller: Caller, world: World, secret: str) -> None:
    content = prompt(tokens=50, interval_ms=10) + secrets.token_hex(8)
    await caller.ask(world, secret=secret, content=content, stream=True, max_tokens=50)
    await caller.head()
    await caller.event()


async def _odd_request(caller: Caller, world: World, secret: str) -> None:
    fields: dict[str, Any] = {"logit_bias": {str(number): 1 for number in range(10_000)}, "stop": ["x"] * 5}
    await caller.send(request(world, secret=secret, **fields))
    await caller.head()
