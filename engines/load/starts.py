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
        told: dict[str, float] = {name: value for name in _COUNTERS if (value := getattr(reading, name)) is not None}
        # llama.cpp's, pieced together, may fall a little by itself.
        fell = any(value < self._counted.get(name, 0) / 2 for name, value in told.items())
        stands = any(self._counted.get(name) for name in told)
        is_new = fell or (self._was_gone and not stands)
        self._was_gone = False
        if is_new:
            self.at = now
            self._counted.clear()  # of the engine before: those told only now and then would say it once more
        self._counted.update(told)
        return is_new
