"""What an engine generated in an event or an answer, in whatever field: text, reasoning, calls, audio, images.

Output that clients know of as text is read where choices are (streamed_choices.py, whole_choices.py). A choice without
any may still have some in a vendor's field; what is none are roles, empty values, and words about the output.
"""

from typing import Any

import msgspec

from headrace.gateway.answers.usage_meter import NO_TEXT

# Words about the output, wherever they are.
_ABOUT = frozenset({
    "annotations", "call_id", "citations", "created", "error", "expires_at", "finish_reason", "format", "id", "index",
    "matched_stop", "model", "object", "obfuscation", "provider", "role", "status", "stop_reason", "type",
})  # fmt: skip
# Bytes in a text's clothes: how long they are says nothing of tokens.
_BINARY = frozenset({"b64_json", "data", "encrypted_content", "signature", "thought_signature", "thoughtSignature"})
_BESIDE_DELTAS = ("text", "content", "reasoning_content", "reasoning")
_any = msgspec.json.Decoder(list[dict[str, Any]])


def unlisted_outputs(choices: bytes, *, is_begun: bool = False) -> list[str]:
    """By place: the text of all that each of these choices, as they came, brings; NO_TEXT for what is none.

    A message in place of a delta repeats an answer that is_begun. Empty where the choices cannot be read.
    """
    try:
        return [_output(choice, is_begun=is_begun) for choice in _any.decode(choices)]
    except (msgspec.DecodeError, RecursionError):
        return []


def _output(choice: dict[str, Any], *, is_begun: bool) -> str:
    said = choice.get("delta") or (None if is_begun else choice.get("message"))
    if not said:  # the old completions' chunks have it beside
        said = {name: choice[name] for name in _BESIDE_DELTAS if name in choice}
    if not isinstance(said, dict):
        return ""
    if said.get("tool_calls"):
        return NO_TEXT  # a call's first event names the function
    text = "".join(_text(name, value) for name, value in said.items() if name != "name")
    return text.replace(NO_TEXT, "") or text[:1]


def _text(name: str, value: Any) -> str:
    if not value or name in _ABOUT:
        return ""
    if isinstance(value, str):
        return NO_TEXT if name in _BINARY or value.startswith("data:") else value
    if isinstance(value, list):
        return "".join(_text(name, each) for each in value)
    if isinstance(value, dict):
        return "".join(_text(inner, each) for inner, each in value.items())
    return ""
