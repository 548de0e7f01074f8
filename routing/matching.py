"""Which targets of a route a request may go to, in order, and which get a copy of it.

First match wins: of the targets whose conditions hold the first is where it goes, the others stand in for it. But

- a canary takes its share of what it matches before all others, and nothing else;
- targets with a weight that follow each other at the head share by weight; the ones not drawn stand in;
- a shadow is never asked for an answer: its share of what it matches is copied to it.

Shares are drawn by conversation, not by request: one that grows stays with its target, and so with its cache. A share
that is raised keeps those it had.
"""

from bisect import bisect
from collections.abc import Callable
from hashlib import blake2b
from itertools import accumulate

import msgspec

from routing.catalog import Route, Target
from routing.conditions import Facts


class Match(msgspec.Struct, frozen=True):
    """targets: where it may go, best first. shadows: where copies go. verdicts: why, by position in the route."""

    targets: list[Target]
    shadows: list[Target]
    verdicts: list[str]


# The number in [0, 1) that is drawn under a name.
Draw = Callable[[str], float]


def drawn_by(conversation: bytes) -> Draw:
    """The same numbers for a conversation every time, and others for another. At most 64 bytes."""
    return lambda name: int.from_bytes(blake2b(name.encode(), key=conversation, digest_size=8).digest()) / 2**64


def match(route: Route, facts: Facts, draw: Draw) -> Match:
    """The route's targets for a request. `draw` is asked for canaries, weights and shadows."""
    canaries, plain, shadows, verdicts = [], [], [], []
    for target in route.targets:
        failed = target.conditions.failed(facts)
        if failed is not None:
            verdicts.append(f"no: {failed}")
        elif target.shadow is not None:
            is_drawn = draw(f"shadow {target.name}") * 100 < target.shadow
            shadows += [target] if is_drawn else []
            verdicts.append(f"shadow of {target.shadow:g}%" + ("" if is_drawn else ": not drawn"))
        elif target.canary is not None:
            is_drawn = draw(f"canary {target.name}") * 100 < target.canary
            canaries += [target] if is_drawn else []
            verdicts.append(f"canary of {target.canary:g}%" + ("" if is_drawn else ": not drawn"))
        else:
            plain.append(target)
            verdicts.append("yes" + (f", weight {target.weight}" if target.weight else ""))
    return Match(canaries + _weighed(plain, draw), shadows, verdicts)


def _weighed(targets: list[Target], draw: Draw) -> list[Target]:
    head = 0
    while head < len(targets) and targets[head].weight:
        head += 1
    if head < 2:
        return targets
    ends = list(accumulate(target.weight or 0 for target in targets[:head]))
    drawn = min(head - 1, bisect(ends, draw("weight") * ends[-1]))
    return [targets[drawn], *targets[:drawn], *targets[drawn + 1 :]]
