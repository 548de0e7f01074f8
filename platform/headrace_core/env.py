"""Readers of the environment: each value is typed, and a bad one fails with the variable's name.

Where a variable is absent, `HOME/runtime.json` answers for the addresses of the parts that `manage.py up` started, so
that every command finds them with `--home` alone.
"""

import json
import os
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

LAST_PORT = 65535


class BadSetting(Exception):
    """A variable holds something that cannot be used; the message names it."""


def home() -> Path:
    """The directory that holds all local state: HEADRACE_HOME, else `.headrace` beside where the command runs."""
    return Path(os.environ.get("HEADRACE_HOME") or ".headrace").resolve()


@cache
def runtime() -> dict[str, str]:
    """What a running `manage.py up` wrote of its parts (DATABASE_URL, REDIS_URL); empty without one."""
    try:
        return dict(json.loads((home() / "runtime.json").read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadSetting(f"{home() / 'runtime.json'} cannot be read: {error}") from error


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name) or runtime().get(name) or default
    if value is None:
        raise BadSetting(f"{name} is not set, and there is no running `manage.py up` under {home()}")
    return value


def number(name: str, default: float, *, least: float = 0) -> float:
    raw = text(name, str(default))
    try:
        value = float(raw)
    except ValueError:
        raise BadSetting(f"{name} is {raw!r}, not a number") from None
    if not least <= value < float("inf"):
        raise BadSetting(f"{name} is {raw}, below {least:g} or not finite")
    return value


def integer(name: str, default: int, *, least: int = 0) -> int:
    value = number(name, default, least=least)
    if value != int(value):
        raise BadSetting(f"{name} is {value}, not a whole number")
    return int(value)


def port(name: str, default: int) -> int:
    value = integer(name, default, least=1)
    if value > LAST_PORT:
        raise BadSetting(f"{name} is {value}, above {LAST_PORT}")
    return value


def flag(name: str, default: bool = False) -> bool:
    raw = text(name, "1" if default else "0").lower()
    if raw not in {"0", "1", "true", "false", "yes", "no"}:
        raise BadSetting(f"{name} is {raw!r}, not one of 1, 0, true, false, yes, no")
    return raw in {"1", "true", "yes"}


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Networks in CIDR notation, parted by commas."""
    try:
        return [ip_network(word) for word in words(name)]
    except ValueError as error:
        raise BadSetting(f"{name}: {error}") from None


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = text(name, default)
    if value not in allowed:
        raise BadSetting(f"{name} is {value!r}, not one of {', '.join(allowed)}")
    return value


def figures(name: str, known: Iterable[str]) -> dict[str, int]:
    """`word=number` pairs parted by commas, of the words in `known`."""
    found: dict[str, int] = {}
    for pair in words(name):
        word, _, number = pair.partition("=")
        if word not in set(known) or not number.isdecimal():
            raise BadSetting(f"{name}: {pair!r} is not a whole number for one of {', '.join(known)}")
        found[word] = int(number)
    return found
