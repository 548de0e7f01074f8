"""The replica with the least work in tokens for its size; of equals the one with the emptier KV cache, then by lot."""

import random
from collections.abc import Sequence
from typing import ClassVar

from routing.policies.base import Ask, Candidate, Ranked, densities, mean_or


class LeastLoaded:
    name: ClassVar[str] = "least_loaded"

    def rank(self, ask: Ask, candidates: Sequence[Candidate], dice: random.Random) -> list[Ranked]:
        usable = [candidate for candidate in candidates if candidate.is_usable]
        mean_kv = mean_or([candidate.kv_used for candidate in usable], 0.0)
        order = sorted(
            (not c.has_room, density, mean_kv if c.kv_used is None else c.kv_used, dice.random(), c.name)
            for c, density in zip(usable, densities(usable), strict=True)
        )
        return [Ranked(name, -density, is_over=full) for full, density, _, _, name in order]
