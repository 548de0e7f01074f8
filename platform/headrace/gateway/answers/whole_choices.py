"""The choices of a whole answer, as clients take them: as they came where they are in their form, else normalised."""

from typing import Any

import msgspec
from msgspec import UNSET

from headrace.gateway.answers.finish_reasons import finish_reason, word_of
from headrace.gateway.answers.json_repair import decode
from headrace.gateway.answers.normalisation import listed, normalise_logprobs, normalise_place, normalise_texts
from headrace.gateway.answers.schema import WholeChoice
from headrace.gateway.answers.tool_calls import normalise_calls

_choices = msgspec.json.Decoder(list[WholeChoice])
_any = msgspec.json.Decoder()


class WholeChoices(msgspec.Struct):
    """choices: what is in `raw`, the bytes that clients get. words: the engine's own for why each ended; None: it does
    not say that it did."""

    choices: list[WholeChoice]
    raw: bytes
    words: list[str | None]


def read_choices(raw: bytes) -> WholeChoices:
    """The choices of an answer, empty where it has none. Raises msgspec.DecodeError."""
    if raw == b"null":
        return WholeChoices([], raw, [])
    try:
        choices = _choices.decode(raw)
        if [choice.index for choice in choices] == list(range(len(choices))):
            return WholeChoices(choices, raw, [choice.finish_reason for choice in choices])
    except msgspec.DecodeError:
        pass
    return normalise(listed(decode(_any, raw)))


def normalise(wholes: list[dict[str, Any]]) -> WholeChoices:
    """The same of choices that are decoded, which it changes. Raises msgspec.DecodeError."""
    words = [word_of(whole.get("finish_reason")) for whole in wholes]
    indices = [index if type(index := whole.get("index")) is int else -1 for whole in wholes]
    is_numbered = sorted(indices) == list(range(len(indices)))
    for place, (whole, word) in enumerate(zip(wholes, words, strict=True)):
        whole |= {
            "index": whole["index"] if is_numbered else place,
            "message": _message(normalise_place(whole, whole.pop("message", None) or whole.pop("delta", None))),
            "finish_reason": finish_reason(word),
            "logprobs": normalise_logprobs(whole.get("logprobs")),
        }
    made = msgspec.json.encode(wholes)
    return WholeChoices(_choices.decode(made), made, words)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    normalise_texts(message)
    calls = normalise_calls(message.pop("tool_calls", None))
    made = {"role": "assistant", "content": None, "refusal": None} | message | {"role": "assistant"}
    return {**made, "tool_calls": calls} if calls else made


def substance(choice: WholeChoice) -> str:
    """All that was generated. Some send their reasoning under both names."""
    message = choice.message
    calls = message.tool_calls if message.tool_calls is not UNSET else []
    text = (message.content or "") + (message.reasoning_content or message.reasoning or "") + (message.refusal or "")
    return text + "".join(call.function.name + call.function.arguments for call in calls)
