"""A chat at one of the places it may go to."""

import msgspec

from routing.selection import Choice


class Fit(msgspec.Struct, frozen=True):
    """A chat at one target: its prompt there, estimated, and the max_tokens of each choice."""

    prompt: int
    max_tokens: int


Place = tuple[Choice, Fit]
