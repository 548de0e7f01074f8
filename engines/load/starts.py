"""Whether an engine was started anew, as seen from outside: what its prefix cache held is gone then.

The signs: a counter that only rises fell; or nothing listened there for a while and no counter tells that it is the
same engine. A start that is quicker than our questions, of an engine that counts nothing, is not seen.
"""

from engines.protocols.reading import Reading

# Those that never fall while an engine runs.
_COUNTERS = ("prefilled_tokens", "prompt_tokens", "output_tokens")


class Starts:
    """One engine's. `at` is when its last start was noticed, in seconds of the caller's clock; None: never yet."""

    def __init__(self) -> None:
        self.at: float | None = None
        self._counted: dict[str, float] = {}
        self._was_gone = False

    def gone(self) -> None:
        """Nothing listens there."""
        self._was_gone = True

    def answered(self, now: float, reading: Reading) -> bool:
        """It told `reading`, which may be empty; whether it was started anew since it last did."""
        fell = stands = False
        for name in _COUNTERS:
            value: float | None = getattr(reading, name)
            if value is None:
                continue
            # llama.cpp's, pieced together, may fall a little by itself.
            if value < self._counted.get(name, 0) / 2:
                fell = True
            elif self._counted.get(name):
                stands = True
            self._counted[name] = value
        is_new = fell or (self._was_gone and not stands)
        self._was_gone = False
        if is_new:
            self.at = now
        return is_new
