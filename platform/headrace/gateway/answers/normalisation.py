"""The parts of a choice as engines write them, made into the form of schema.py. Each changes what it is given.

What says something is kept in the nearest form that clients take: text in parts as text, an object as JSON.
"""

from typing import Any

import msgspec

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
# What OpenAI gives for a token that is as good as impossible; JSON has no -Infinity.
_LEAST_LOGPROB = -9999.0


def listed(choices: Any) -> list[dict[str, Any]]:
    """Choices of any form as a list: one may stand by itself, and what is empty is none. Raises msgspec.DecodeError."""
    found = [choices] if isinstance(choices, dict) and choices else choices or []
    if not isinstance(found, list):
        raise msgspec.DecodeError("choices that are no list")
    found = [each for each in found if each or isinstance(each, dict)]
    if not all(isinstance(each, dict) for each in found):
        raise msgspec.DecodeError("a choice that is no object")
    return found


def normalise_place(choice: dict[str, Any], said: Any) -> dict[str, Any]:
    """The delta or message `said` of a choice, or an empty one; text in its place or beside it is its content."""
    made = said if isinstance(said, dict) else {"content": said} if isinstance(said, str) and said else {}
    text = choice.pop("text", None)
    inner = made.pop("text", None)
    if not any(made.get(name) for name in (*_TEXTS, "tool_calls", "function_call")) and (text := inner or text):
        made["content"] = as_text(text)
    return made


def normalise_texts(message: dict[str, Any]) -> None:
    """Text, annotations, audio and the old `function_call` of a delta or a message."""
    if isinstance(message.get("content"), list):
        _join_parts(message)
    for name in _TEXTS:
        text = message.get(name)
        # A number is no text in any form: such content is an answer of no kind.
        if text is not None and not isinstance(text, str) and not (name == "content" and type(text) in {int, float}):
            message[name] = as_text(text) or None
    call = message.pop("function_call", None)
    if isinstance(call, dict) and call and not message.get("tool_calls"):
        message["tool_calls"] = [{"index": 0, "function": call}]
    if "audio" in message:
        message["audio"] = None
    if annotations := _normalise_annotations(message.pop("annotations", None)):
        message["annotations"] = annotations


def as_text(value: Any) -> str:
    """Text as it is; the text of parts and objects that hold one; as JSON what else should be text. Nothing of false
    or null."""
    if not value or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "".join(as_text(each) for each in value)
    if isinstance(value, dict):
        for name in ("text", "content", "thinking", "reasoning", "refusal"):
            if isinstance(value.get(name), str | list):
                return as_text(value[name])
    return msgspec.json.encode(value).decode()


def _join_parts(message: dict[str, Any]) -> None:
    """Content in parts, some of which are thoughts or a refusal, as text of each."""
    content: list[str] = []
    thoughts: list[str] = []
    refusals: list[str] = []
    for part in message["content"]:
        kind = part.get("type") if isinstance(part, dict) else ""
        whose = thoughts if kind in {"thinking", "reasoning"} else refusals if kind == "refusal" else content
        whose.append(as_text(part))
    message["content"] = "".join(content) if content else None
    for name, texts in (("reasoning_content", thoughts), ("refusal", refusals)):
        if texts:
            message[name] = as_text(message.get(name)) + "".join(texts)


def _normalise_annotations(annotations: Any) -> list[dict[str, Any]]:
    """Citations of pages, with the places and titles that clients want; others are of no kind that they know."""
    found = []
    for each in annotations if isinstance(annotations, list) else ():
        citation = each.get("url_citation") if isinstance(each, dict) else None
        if isinstance(citation, dict) and isinstance(citation.get("url"), str):
            places = {name: _whole(citation.get(name)) for name in ("start_index", "end_index")}
            found.append({
                **each,
                "type": "url_citation",
                "url_citation": {**citation, **places, "title": as_text(citation.get("title"))},
            })  # fmt: skip
    return found


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def normalise_logprobs(logprobs: Any) -> dict[str, Any] | None:
    """A choice's logprobs; those of the old completions, in parallel lists, too."""
    if not isinstance(logprobs, dict):
        return None
    if isinstance(logprobs.get("tokens"), list) and not logprobs.get("content"):
        logprobs = {"content": _of_parallel_lists(logprobs)}
    told = {name: _tokens(logprobs.get(name), tops=True) for name in ("content", "refusal")}
    return {**logprobs, **told} if any(value is not None for value in told.values()) else None


def _of_parallel_lists(logprobs: dict[str, Any]) -> list[dict[str, Any]]:
    tokens, values, tops = (logprobs.get(name) or [] for name in ("tokens", "token_logprobs", "top_logprobs"))
    made = []
    for place, token in enumerate(tokens):
        value = values[place] if place < len(values) else None
        top = tops[place] if place < len(tops) and isinstance(tops[place], dict) else {}
        entries = [{"token": each, "logprob": logprob} for each, logprob in top.items()]
        made.append({"token": token, "logprob": value, "top_logprobs": entries})
    return made


def _tokens(entries: Any, *, tops: bool) -> list[dict[str, Any]] | None:
    if not isinstance(entries, list):
        return None
    return [_token(each, tops=tops) for each in entries if isinstance(each, dict)]


def _token(entry: dict[str, Any], *, tops: bool) -> dict[str, Any]:
    token, logprob, octets = as_text(entry.get("token")), entry.get("logprob"), entry.get("bytes")
    if not isinstance(logprob, int | float) or isinstance(logprob, bool):
        logprob = _LEAST_LOGPROB
    is_octets = isinstance(octets, list) and all(type(each) is int for each in octets)
    told = {**entry, "token": token, "logprob": logprob, "bytes": octets if is_octets else None}
    return {**told, "top_logprobs": _tokens(entry.get("top_logprobs"), tops=False) or []} if tops else told
