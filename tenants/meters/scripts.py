"""The Lua scripts as callables, over an async or a sync Redis client alike."""

import hashlib
from collections.abc import Awaitable
from importlib.resources import files
from typing import Any

import redis
import redis.asyncio

_LUA = files(__package__) / "lua"
_LIBRARIES = ("exact", "kinds", "budgets", "rooms", "crowding", "queue")
_COMMON = "".join((_LUA / f"{name}.lua").read_text() for name in _LIBRARIES)

Argument = str | bytes | int


class Script:
    """One script: the kinds and a verb. Scripts are lost when Redis restarts; a call then sends the source again."""

    def __init__(self, verb: str) -> None:
        self.source = _COMMON + (_LUA / f"{verb}.lua").read_text()
        self.sha = hashlib.sha1(self.source.encode()).hexdigest()

    async def call(self, client: "redis.asyncio.Redis", keys: list[str], arguments: list[Argument]) -> Any:
        try:
            return await _answer(client.evalsha(self.sha, len(keys), *keys, *arguments))
        except redis.exceptions.NoScriptError:
            return await _answer(client.eval(self.source, len(keys), *keys, *arguments))

    def call_sync(self, client: "redis.Redis", keys: list[str], arguments: list[Argument]) -> Any:
        try:
            return client.evalsha(self.sha, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return client.eval(self.source, len(keys), *keys, *arguments)


async def _answer(pending: Awaitable[Any] | Any) -> Any:
    return await pending


ADMIT = Script("admit")
MOVE = Script("move")
REJOIN = Script("rejoin")
SETTLE = Script("settle")
CORRECT = Script("correct")
RENEW = Script("renew")
REHOLD = Script("rehold")
EXPIRED = Script("expired")
ASIDE = Script("aside")
WITHDRAW = Script("withdraw")
GRACE = Script("grace")
REBUILD = Script("rebuild")
ADOPT = Script("adopt")
TRUST = Script("trust")
TEND = Script("tend")
QUIT = Script("quit")
