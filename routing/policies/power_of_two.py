"""Two replicas by lot, the less loaded of them first: nearly as even as the least loaded, and no herd runs to one
replica while the picture of the load is old (Mitzenmacher, "The power of two choices", 2001)."""

import random
from collections.abc import Sequence
from typing import ClassVar

from routing.policies.base import Ask, Candidate, Ranked, densities


class PowerOfTwo:
    name: ClassVar[str] = "power_of_two"

    def rank(self, ask: Ask, candidates: Sequence[Candidate], dice: random.Random) -> list[Ranked]:
        usable = [candidate for candidate in candidates if candidate.is_usable]
        drawn = list(zip(usable, densities(usable), strict=True))
        dice.shuffle(drawn)
        pairs = [sorted(drawn[at : at + 2], key=lambda pair: pair[1]) for at in range(0, len(drawn), 2)]
        order = sorted((pair for pairing in pairs for pair in pairing), key=lambda pair: not pair[0].has_room)
        return [Ranked(c.name, -density, is_over=not c.has_room) for c, density in order]
