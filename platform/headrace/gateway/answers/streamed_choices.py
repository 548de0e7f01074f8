"""The choices of a stream's events, as clients take them: most as they came, the others normalised.

An event whose choices are in the form of schema.py passes byte for byte, after one decode. What depends on the
events before it is kept here: which choices have begun, and their tool calls.
"""

from typing import Any

import msgspec

from engines.errors import UpstreamError
from headrace.gateway.answers.finish_reasons import failure, finish_reason, word_of
from headrace.gateway.answers.json_repair import decode
from headrace.gateway.answers.normalisation import listed, normalise_logprobs, normalise_place, normalise_texts
from headrace.gateway.answers.schema import CallPiece, StreamedChoice
from headrace.gateway.answers.tool_calls import StreamedCalls
from headrace.gateway.operations.operation import Operation

# What Unicode also ends lines with: JSON takes it as it is, but many clients part a stream's lines at it.
_LINE_ENDS = {b"\xe2\x80\xa8": rb"\u2028", b"\xe2\x80\xa9": rb"\u2029", b"\xc2\x85": rb"\u0085"}
_choices = msgspec.json.Decoder(list[StreamedChoice] | None)
_any = msgspec.json.Decoder()


class StreamedChoices:
    """Composed once per attempt. finish_word: the engine's own word for why the last choice ended. failure: what that
    means where it is no end of an answer."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._begun: set[int] = set()
        self._calls: dict[int, StreamedCalls] = {}
        self._annotations: dict[int, int] = {}  # how many of them a choice has had
        self.finish_word: str | None = None
        self.failure: UpstreamError | None = None

    def read(self, raw: bytes, *, is_begun: bool) -> tuple[list[StreamedChoice], bytes]:
        """An event's choices, and the bytes of them that clients get. Raises msgspec.DecodeError.

        A message in place of the delta is taken for it, unless the answer is_begun: then the message repeats it.
        """
        try:
            choices = _choices.decode(raw) or []
        except msgspec.DecodeError:
            return self._normalise(raw, is_begun)
        for choice in choices:
            if not self._passes(choice):
                return self._normalise(raw, is_begun)
        for choice in choices:
            self._note(choice)
        return choices, on_one_line(raw)

    def _passes(self, choice: StreamedChoice) -> bool:
        """Whether what it says fits what came before: its role once, calls that are known."""
        delta = choice.delta
        if (delta.role is None) is not (choice.index in self._begun) or choice.index >= self._operation.n:
            return False
        if choice.index > len(self._begun):
            return False
        calls = self._calls.get(choice.index)
        if delta.annotations:
            return False
        if delta.tool_calls:
            return calls is not None and all(calls.continues(piece) for piece in delta.tool_calls)
        return choice.finish_reason is None or calls is None or not calls.has_held

    def _note(self, choice: StreamedChoice) -> None:
        if choice.delta.role is not None:
            self._begun.add(choice.index)
        if choice.delta.tool_calls:
            calls = self._calls[choice.index]
            for piece in choice.delta.tool_calls:
                calls.note(piece)
        if choice.finish_reason is not None:
            self.finish_word = choice.finish_reason

    def _normalise(self, raw: bytes, is_begun: bool) -> tuple[list[StreamedChoice], bytes]:
        wholes: list[dict[str, Any]] = []
        for whole in listed(decode(_any, raw)):
            self._normalise_choice(whole, is_begun)
            wholes += [*self._openings(whole["index"]), whole]
        made = msgspec.json.encode(wholes)
        return _choices.decode(made) or [], on_one_line(made)

    def _normalise_choice(self, choice: dict[str, Any], is_begun: bool) -> None:
        delta, message = choice.get("delta"), choice.pop("message", None)
        if not isinstance(delta, dict | str) and not is_begun:
            delta = message
        delta = normalise_place(choice, delta)
        index = self._index(choice.get("index"))
        normalise_texts(delta)
        delta.pop("role", None)
        if index not in self._begun:
            self._begun.add(index)
            delta = {"role": "assistant", **delta}
        word = word_of(choice.get("finish_reason"))
        if word is not None:
            self.finish_word, self.failure = word, failure(word)
        told = self._told_calls(index, delta.pop("tool_calls", None), is_over=word is not None)
        if told:
            delta["tool_calls"] = told
        # openai-python puts lists of objects together by their index, and fails without.
        for number, each in enumerate(delta.get("annotations", ()), self._annotations.get(index, 0)):
            each["index"], self._annotations[index] = number, number + 1
        choice |= {"index": index, "delta": delta, "finish_reason": finish_reason(word)}
        if choice.get("logprobs") is not None:
            choice["logprobs"] = normalise_logprobs(choice["logprobs"])

    def _openings(self, index: int) -> list[dict[str, Any]]:
        """The roles of choices before `index` that have not begun: openai-python fails where they come out of order."""
        late = [each for each in range(min(index, self._operation.n)) if each not in self._begun]
        self._begun.update(late)
        return [{"index": each, "delta": {"role": "assistant"}, "finish_reason": None} for each in late]

    def _index(self, index: Any) -> int:
        """A choice without a number, or with one beyond those that were asked for, is the first of one."""
        is_number = isinstance(index, int) and not isinstance(index, bool) and index >= 0
        return index if is_number and (index < self._operation.n or self._operation.n > 1) else 0

    def _told_calls(self, index: int, pieces: Any, *, is_over: bool) -> list[dict[str, Any]]:
        calls = self._calls.get(index)
        if pieces and calls is None:
            calls = self._calls[index] = StreamedCalls(self._operation.tool_names)
        if calls is None:
            return []
        told = calls.take(pieces) if pieces else []
        return told + calls.end() if is_over else told


def substance(choice: StreamedChoice) -> str:
    """The text an event brings: content, reasoning, refusal, a tool call's arguments. Empty: a role, or the end.

    Some send their reasoning under both names.
    """
    delta = choice.delta
    text = delta.content or ""
    if more := delta.reasoning_content or delta.reasoning or delta.refusal:
        text += more
    if delta.tool_calls:
        # A call's first event names the function and may have no arguments yet: it is output all the same.
        text += "".join(_said(piece) for piece in delta.tool_calls) or " "
    return text


def _said(piece: CallPiece) -> str:
    return piece.function.arguments


def on_one_line(raw: bytes) -> bytes:
    """JSON without anything in it that a client could take for the end of a line."""
    for end, escaped in _LINE_ENDS.items():
        if end in raw:
            raw = raw.replace(end, escaped)
    # An event sent as several data lines has line ends between its tokens, which must not reach our own line.
    return msgspec.json.format(raw, indent=-1) if b"\n" in raw else raw
