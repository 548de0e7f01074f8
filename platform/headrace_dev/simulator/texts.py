"""The text of tokens: `tok0 tok1 ...` unless the script says otherwise."""

import time

from headrace_dev.simulator.chunks import plain_token, text_json
from headrace_dev.simulator.script import Script


class Texts:
    """Token texts of one answer; token k has the same text in every choice."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._texts = script.texts
        self._plain = self._texts is None and not script.big_event and not script.stamp

    def token(self, k: int) -> str:
        if self._script.stamp:
            return f"{k}@{time.monotonic_ns()} "
        text = self._texts[k % len(self._texts)] if self._texts is not None else f"tok{k} "
        if k == 0 and self._script.big_event:
            text += "x" * (self._script.big_event - len(text))
        return text

    def run(self, start: int, stop: int) -> str:
        return "".join(self.token(k) for k in range(start, stop))

    def json(self, start: int, stop: int) -> bytes:
        """The JSON string of tokens [start, stop)."""
        if self._plain and stop == start + 1:
            return plain_token(start)
        return text_json(self.run(start, stop))
