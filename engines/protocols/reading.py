"""What an engine says of its load at one moment, before rates are made of its counters."""

import msgspec


class Reading(msgspec.Struct):
    """None: the engine does not say. Tokens are tokens of its own tokenizer.

    running, waiting: requests. waiting_tokens: prompt tokens not yet computed of those waiting.
    kv_used: share (0..1) of `kv_capacity` tokens that running requests hold; what the prefix cache keeps is free.
    prefix_hit_rate: share of prompt tokens found in the cache lately; else the counters it is made of.
    output_rate: output tokens/s; else the counter it is made of. retractions: since the engine started.
    prefilled_tokens: a counter of the prompt tokens it computed.
    """

    running: int | None = None
    waiting: int | None = None
    waiting_tokens: int | None = None
    kv_used: float | None = None
    kv_capacity: int | None = None
    prefix_hit_rate: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    output_rate: float | None = None
    output_tokens: float | None = None
    retractions: int | None = None
    prefilled_tokens: float | None = None

    def completed(self, other: "Reading") -> "Reading":
        """This one, with what `other` says where this says nothing."""
        names = self.__struct_fields__
        return Reading(*(ours if (ours := getattr(self, n)) is not None else getattr(other, n) for n in names))


def whole(value: float | None) -> int | None:
    return None if value is None else round(value)
