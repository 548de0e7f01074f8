"""The usage an answer reports: SGLang's form, and the ways in which upstreams get it wrong (script.UsageKind)."""

from headrace_dev.simulator.script import Script

HUGE = 10**30


class Usage:
    """Renders usage for one answer. `running` and `final` return JSON fragments, empty where nothing is reported."""

    def __init__(self, script: Script, *, include: bool, continuous: bool, prompt: int, cached: int) -> None:
        kind = script.usage
        self._kind = kind
        everywhere = kind in {"continuous", "twice"}
        self._running = everywhere or (continuous and kind not in {"final", "finish", "none", "null", "null_zero"})
        self._include = (
            everywhere or kind in {"final", "null_zero"} or (include and kind not in {"finish", "none", "null"})
        )
        self._null = kind in {"null", "null_zero"}
        self.prompt, self.cached = prompt, cached
        self._details = script.usage_details

    @property
    def final_chunks(self) -> int:
        """How many chunks of usage alone follow the last choice."""
        return (2 if self._kind == "twice" else 1) if self._include else 0

    def running(self, completion: int, reasoning: int) -> bytes:
        """What a content chunk carries: `,"usage":{...}`, `,"usage":null` or nothing."""
        if self._null:
            return b',"usage":null'
        return b',"usage":' + self.figures(completion, reasoning) if self._running else b""

    def finish(self, completion: int, reasoning: int) -> bytes:
        """What the chunk with the finish reason carries."""
        if self._null:
            return b',"usage":null'
        if self._kind in {"finish", "twice"}:
            return b',"usage":' + self.figures(completion, reasoning)
        return b""

    def figures(self, completion: int, reasoning: int) -> bytes:
        """The usage object; completion is the sum over the choices, the prompt counts once."""
        prompt, cached, kind = self.prompt, self.cached, self._kind
        if kind in {"zero", "null_zero"}:
            prompt = cached = completion = reasoning = 0
        elif kind == "negative":
            prompt, cached, completion, reasoning = -prompt, -cached, -completion, -reasoning
        elif kind == "cached_over_prompt":
            cached = prompt + 100
        elif kind == "huge":
            prompt, completion = HUGE, HUGE
        elif kind == "partial":
            return b'{"prompt_tokens":%d}' % prompt
        details = b'{"cached_tokens":%d}' % cached if self._details else b"null"
        form = b'"%d"' if kind == "string" else b"%d"
        return (
            b'{"prompt_tokens":'
            + form
            + b',"total_tokens":'
            + form
            + b',"completion_tokens":'
            + form
            + b',"prompt_tokens_details":%b,"reasoning_tokens":%d,"completion_tokens_details":null}'
        ) % (prompt, prompt + completion, completion, details, reasoning)
