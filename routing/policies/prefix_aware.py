"""The replica that has most of the prompt in its cache, unless it carries too much: one score, and a cap on it.

    score = credit - load_weight * relative - kv_weight * pressure

    credit   = sum over the prompt's tokens in its cache of (n - holders) / (n - 1), over the prompt's length
               x min(1, prompt / short_prompt)
    relative = (density - mean) / max(mean, quiet_tokens)        density = work in tokens / size of the replica
    pressure = how far its KV use is between kv_high and full, 0..1

All parts have no unit, so none of them needs tuning to a model or an accelerator.

- credit: a token that only this replica holds counts 1; one that half of them hold about a half; one that all hold
  counts nothing, since it is no reason to prefer any. So a system prompt shared by everyone spreads, while the
  conversation behind it still finds its own replica: the tokens are weighed one by one, not the prompt as a whole.
  Short prompts earn less: they save less prefill than a longer queue costs.
- relative: in tokens that its requests attend to, prefill and decode together, since ten chats and ten documents are
  not the same load. What they found in the cache counts as well: it takes no room again, but each decode step reads
  it for each of them (the 21.7 ms in which an L40S streams Llama 3.1 8B read the KV of 115,000 tokens; engines/sizing).
  What is still to be read counts more (UNREAD_WEIGHT in base.py). With load_weight 1 a whole prompt of credit is
  outweighed by one mean load of difference, so a hot prefix is copied to the next replica before its holder carries
  twice the mean. Below quiet_tokens (one chunk of prefill, SGLang's default chunked_prefill_size) nobody waits for
  anybody, so differences there count little.
- pressure: engines retract running requests when the KV cache is full, which costs more than any prefill; between
  kv_high and full the score falls by kv_weight, more than credit can earn back.
- cap: whoever has more than (1 + over_mean) x mean + quiet_tokens for its size, or has no room for the request,
  stands behind all that do not, by load alone. Affinity never overloads a replica.
- explore: now and then a replica within the cap leads by lot, so that the index learns of caches it knows nothing about
  (after a restart, or when it was warmed by others). Not one that would read more than half of the prompt anew which
  another is known to have: a long conversation would be read whole once in a hundred turns, and then be held twice.

Unknown load or KV use weighs as the mean. Only usable replicas are in any mean or count of holders. Ties fall by
`mark`: the same new prompt, sent twice at once through two gateways, goes to one replica.
"""

import random
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from routing.policies.base import Ask, Candidate, Ranked, densities, mean_or, sizes


class Weights(msgspec.Struct, frozen=True):
    """The numbers of the score, as the module explains them."""

    load_weight: float = 1.0
    kv_weight: float = 2.0
    kv_high: float = 0.8
    over_mean: float = 0.5
    quiet_tokens: int = 8192
    short_prompt: int = 1024
    explore: float = 0.01


class PrefixAware:
    """The default."""

    name: ClassVar[str] = "prefix_aware"

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()

    def rank(self, ask: Ask, candidates: Sequence[Candidate], dice: random.Random) -> list[Ranked]:
        usable = [candidate for candidate in candidates if candidate.is_usable]
        if not usable:
            return []
        weights, loads = self.weights, densities(usable)
        # The mean is each size's fair share: what all hold over the sizes of all.
        shares = sizes(usable)
        mean = sum(load * share for load, share in zip(loads, shares, strict=True)) / sum(shares)
        scale = max(mean, weights.quiet_tokens)
        cap = (1 + weights.over_mean) * mean + weights.quiet_tokens
        pressures = [self._pressure(candidate.kv_used) for candidate in usable]
        mean_pressure = mean_or(pressures, 0.0)
        ranked = []
        for candidate, load, credit, known in zip(usable, loads, self.credits(ask, usable), pressures, strict=True):
            pressure = mean_pressure if known is None else known
            relative = (load - mean) / scale
            score = credit - weights.load_weight * relative - weights.kv_weight * pressure
            is_over = load > cap or not candidate.has_room
            ranked.append(Ranked(candidate.name, round(score, 6), credit, relative, pressure, is_over))
        ranked.sort(key=lambda one: _place(one, ask.mark))
        if dice.random() < weights.explore and (within := _explorable(ask, usable, ranked)):
            lot = dice.choice(within)
            ranked.remove(lot)
            ranked.insert(0, msgspec.structs.replace(lot, is_explored=True))
        return ranked

    def credits(self, ask: Ask, usable: Sequence[Candidate]) -> list[float]:
        """What each one's overlap is worth, 0..1."""
        count, prompt = len(usable), max(1, ask.prompt)
        overlaps = [min(max(0, candidate.overlap), prompt) for candidate in usable]
        worth = min(1.0, prompt / self.weights.short_prompt) / prompt
        earned: dict[int, float] = {0: 0.0}
        depth, total = 0, 0.0
        for overlap in sorted(set(overlaps) - {0}):
            holders = sum(other >= overlap for other in overlaps)
            total += (overlap - depth) * ((count - holders) / (count - 1) if count > 1 else 1.0)
            earned[overlap] = total
            depth = overlap
        return [earned[overlap] * worth for overlap in overlaps]

    def _pressure(self, kv_used: float | None) -> float | None:
        if kv_used is None:
            return None
        high = self.weights.kv_high
        return min(1.0, max(0.0, kv_used - high) / (1 - high))


def _explorable(ask: Ask, usable: Sequence[Candidate], ranked: Sequence[Ranked]) -> list[Ranked]:
    """Those within the cap that lack at most half of the prompt that another has."""
    overlaps = {candidate.name: candidate.overlap for candidate in usable}
    least = max(overlaps.values()) - ask.prompt / 2
    return [one for one in ranked if not one.is_over and overlaps[one.name] >= least]


def _place(one: Ranked, mark: int) -> tuple[bool, float, int]:
    """Those over the cap last, by load alone; ties by a hash of mark and name (rendezvous hashing)."""
    return one.is_over, one.relative if one.is_over else -one.score, hash((mark, _number(one.name)))


def _number(name: str) -> int:
    # Python's own hash of text differs from process to process.
    return int.from_bytes(name.encode()[-16:], "big")
