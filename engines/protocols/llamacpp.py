"""llama.cpp's server: closing the connection aborts a stream at once; no cache salt, so for demonstrations only."""

from collections.abc import Mapping
from typing import Any

import msgspec

from engines.protocols.base import EXTENSIONS, Attempt, Protocol, Upstream
from engines.protocols.exposition import Exposition
from engines.protocols.reading import Reading, whole

_SLOTS = "/slots"
_METRICS = "/metrics"
_WANTED = tuple(
    f"llamacpp:{name}"
    for name in ("requests_deferred", "tokens_predicted_total", "prompt_tokens_total", "prompt_tokens_cached_total")
)


class _Next(msgspec.Struct):
    n_decoded: int = 0


class _Slot(msgspec.Struct):
    n_ctx: int = 0
    is_processing: bool = False
    n_prompt_tokens: int = 0  # its prompt and what it has written so far
    next_token: list[_Next] | _Next | None = None

    @property
    def written(self) -> int:
        tokens = self.next_token if isinstance(self.next_token, list) else [self.next_token]
        return sum(each.n_decoded for each in tokens if each)


class _Modalities(msgspec.Struct):
    """What its projector reads; servers that say nothing of video take none."""

    vision: bool | None = None
    audio: bool | None = None
    video: bool = False


class _Props(msgspec.Struct):
    modalities: _Modalities | None = None


_props = msgspec.json.Decoder(_Props)
_NO_TOOL = msgspec.Raw(b'"none"')
_slots = msgspec.json.Decoder(list[_Slot])


class LlamaCpp(Protocol):
    name = "llamacpp"
    extensions = EXTENSIONS
    # tool_choice is taken and ignored: the answer is plain text.
    lacks = frozenset({"tool_choice"})
    health_path = "/health"
    load_paths = (_SLOTS, _METRICS)
    about_paths = ("/props",)
    many_choices = False  # it answers them, but its usage counts one of them
    token_per_event = True

    def refused(self, fields: Mapping[str, Any]) -> str | None:
        return super().refused(_without_tools(fields))

    def body(self, upstream: Upstream, fields: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
        fields = _without_tools(fields)
        body = super().body(upstream, fields, attempt)
        if (penalty := body.pop("repetition_penalty", None)) is not None:
            body["repeat_penalty"] = penalty
        # Its tokens so far come with `timings`; without them a cut stream has no count.
        body["timings_per_token"] = attempt.stream
        return body

    def count_request(self, upstream: Upstream, text: str) -> tuple[str, bytes] | None:
        return f"{upstream.base_url}/tokenize", msgspec.json.encode({"content": text})

    def read_load(self, answers: dict[str, bytes]) -> Reading:
        """Its slots say what runs (its metrics say 0 during a stream), its metrics what waits and what was done.

        Its counter of written tokens counts a request when it ends: what the running ones wrote is added.
        """
        reading = Reading()
        written = 0
        if (body := answers.get(_SLOTS)) is not None:
            slots = _slots.decode(body)
            busy = [slot for slot in slots if slot.is_processing]
            capacity, written = sum(slot.n_ctx for slot in slots), sum(slot.written for slot in busy)
            reading.running, reading.kv_capacity = len(busy), capacity or None
            reading.kv_used = sum(slot.n_prompt_tokens for slot in busy) / capacity if capacity else None
        if (body := answers.get(_METRICS)) is not None:
            page = Exposition(body.decode(), _WANTED)
            uncached, cached = (page.sum(f"llamacpp:prompt_tokens{name}_total") for name in ("", "_cached"))
            reading.waiting = whole(page.sum("llamacpp:requests_deferred"))
            if uncached is not None and cached is not None:
                reading.prompt_tokens, reading.cached_tokens = uncached + cached, cached
            if (done := page.sum("llamacpp:tokens_predicted_total")) is not None and _SLOTS in answers:
                reading.output_tokens = done + written
        return reading

    def read_lacks(self, about: bytes) -> frozenset[str]:
        said = _props.decode(about).modalities
        if said is None:
            return frozenset()
        taken = {"image": said.vision, "audio": said.audio, "video": said.video}
        return frozenset(kind for kind, is_taken in taken.items() if is_taken is False)


def _without_tools(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chat whose `tool_choice` is none, without its tools: what is not there is not called."""
    if fields.get("tool_choice") != _NO_TOOL:
        return dict(fields)
    return {name: value for name, value in fields.items() if name not in {"tools", "tool_choice"}}
