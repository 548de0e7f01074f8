"""An operation at one of the places it may go to."""

import msgspec

from routing.catalog import Route
from routing.selection import Choice
from tenants.keyring import Principal
from tenants.meters.meter import OUTPUT_TOKENS


class Fit(msgspec.Struct, frozen=True):
    """An operation at one target: its prompt there, estimated, and the max_tokens of each choice."""

    prompt: int
    max_tokens: int


Place = tuple[Choice, Fit]


def default_output(principal: Principal, route: Route, n: int) -> int:
    """The max_tokens of each of `n` choices where the client names none and the window has room: the route's, or the
    most that a smaller limit lets it ask for. Nobody is to be refused for what nobody asked for."""
    most = [meter.limit // n for meter in principal.meters if meter.measure == OUTPUT_TOKENS]
    if principal.max_output_tokens is not None:
        most.append(principal.max_output_tokens)
    return max(1, min([route.default_max_tokens, *most]))
