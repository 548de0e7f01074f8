"""Each replica in turn, whatever it holds. To compare with."""

import random
from collections.abc import Sequence
from typing import ClassVar

from routing.policies.base import Ask, Candidate, Ranked


class RoundRobin:
    name: ClassVar[str] = "round_robin"

    def rank(self, ask: Ask, candidates: Sequence[Candidate], dice: random.Random) -> list[Ranked]:
        usable = sorted((candidate for candidate in candidates if candidate.is_usable), key=lambda c: c.name)
        start = ask.turn % len(usable) if usable else 0
        return [Ranked(c.name, float(-place)) for place, c in enumerate(usable[start:] + usable[:start])]
