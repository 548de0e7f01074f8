"""What an ordering rule has to be for this bench, and the rule to compare with: first come, first served."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

CLASSES = ("interactive", "standard", "batch")


class Order(Protocol):
    """Whose turn it is; pure, in memory. `cost` and `tokens` are virtual tokens, as the rule's own `cost` counts them.

    join: a request begins to wait, at its worst case. turns: who may go now, best first; whoever fits first goes.
    is_owed: no ceiling holds it back. granted: it was given room. served: service to add; negative where the worst
    case counted was not used.
    """

    def join(self, request_id: str, *, tenant: str, priority: str, cost: float) -> None: ...

    def turns(self) -> list[str]: ...

    def is_owed(self, request_id: str) -> bool: ...

    def granted(self, request_id: str) -> None: ...

    def served(self, tenant: str, priority: str, tokens: float) -> None: ...


@dataclass(frozen=True)
class Rule:
    """`ceiling`: how full a class may make a replica. `cost`: virtual tokens of (input, output) tokens."""

    name: str
    order: Callable[[], Order]
    cost: Callable[[int, int], float]
    ceiling: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(CLASSES, 1.0))


class FirstCome:
    """No classes, no tenants."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()

    def join(self, request_id: str, *, tenant: str, priority: str, cost: float) -> None:
        self._waiting.append(request_id)

    def turns(self) -> list[str]:
        return [self._waiting[0]] if self._waiting else []

    def is_owed(self, request_id: str) -> bool:
        return False

    def granted(self, request_id: str) -> None:
        self._waiting.remove(request_id)

    def served(self, tenant: str, priority: str, tokens: float) -> None:
        return
