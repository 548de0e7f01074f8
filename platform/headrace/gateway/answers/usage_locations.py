"""Where upstreams tell usage in an event or an answer: beside the choices, in a vendor's field, or in a choice."""

import re
from typing import Any

import msgspec

from headrace.gateway.answers.extra_fields import SaidBeside
from headrace.gateway.answers.raw_json import NULL, is_empty
from headrace.gateway.answers.reported_usage import usage_in
from headrace.gateway.answers.usage_meter import UsageMeter


class UsagePlaces(SaidBeside):
    """The fields beside the choices. x_groq: an object with a usage of its own. timings: llama.cpp's."""

    usage: msgspec.Raw = NULL
    timings: msgspec.Raw = NULL
    x_groq: msgspec.Raw = NULL
    usage_metadata: msgspec.Raw = NULL
    usageMetadata: msgspec.Raw = NULL
    token_usage: msgspec.Raw = NULL

    @property
    def of_vendor(self) -> msgspec.Raw:
        """The usage of the whole request in a field of a vendor's; NULL where there is none."""
        if NULL is self.x_groq is self.usage_metadata is self.usageMetadata is self.token_usage:
            return NULL
        inner = _usage_in(bytes(self.x_groq))
        told = (inner, self.usage_metadata, self.usageMetadata, self.token_usage)
        return next((raw for raw in told if _says(raw)), NULL)


class _Holder(msgspec.Struct):
    usage: msgspec.Raw = NULL


class _Choice(_Holder):
    index: int | None = None


_holder = msgspec.json.Decoder(_Holder)
_choices = msgspec.json.Decoder(list[_Choice])
_any = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.encode
# Some have a place for usage in every event, and leave it empty or full of zeros.
_SAYS = re.compile(rb"[1-9]")
# Fields of unknown vendors that may hold usage; of others, numbers of the same names may be limits.
_MAY_HOLD = re.compile(r"usage|tokens?\b|meta|metric|stats|statistic", re.IGNORECASE)


def note_usage(
    told: UsagePlaces, choices: msgspec.Raw, meter: UsageMeter, data: bytes, *, index: int | None, is_last: bool
) -> None:
    """Take what is told of the use: of choice `index` so far, or, where that is None, of the whole request.

    data: the whole event or answer. is_last: whether a choice ends with it, or it has none: then what is told nowhere
    else is looked for in any field.
    """
    is_told = _says(told.usage)
    if is_told:
        _note(meter, told.usage, index)
    if _says(vendor := told.of_vendor):
        meter.final(vendor)
        is_told = True
    if not is_told and b'"usage"' in bytes(choices):
        is_told = _note_of_choices(bytes(choices), meter)
    if not is_empty(told.timings):
        meter.timings(index or 0, told.timings)
        is_told = True
    if is_last and not is_told and not _note_anywhere(data, meter) and not is_empty(told.usage):
        _note(meter, told.usage, index)


def _says(raw: msgspec.Raw) -> bool:
    return raw is not NULL and _SAYS.search(bytes(raw)) is not None


def _note_of_choices(choices: bytes, meter: UsageMeter) -> bool:
    try:
        found = _choices.decode(choices)
    except msgspec.DecodeError:
        return False
    told = [(place, choice) for place, choice in enumerate(found) if _says(choice.usage)]
    for place, choice in told:
        meter.running(place if choice.index is None else choice.index, choice.usage)
    return bool(told)


def _note_anywhere(data: bytes, meter: UsageMeter) -> bool:
    """Take usage from any field of an event or an answer, its choices and what they say; whether there is any."""
    try:
        whole = _any.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    choices = whole.pop("choices", None)
    if found := _found_in(whole) or _itself(whole):
        meter.final(msgspec.Raw(_encode(found)))
        return True
    is_told = False
    for place, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, dict):
            continue
        inner = (choice.get("delta"), choice.get("message"))
        if found := next((f for each in (choice, *inner) if isinstance(each, dict) and (f := _found_in(each))), None):
            index = choice.get("index")
            meter.running(index if type(index) is int else place, msgspec.Raw(_encode(found)))
            is_told = True
    return is_told


def _found_in(outer: dict[str, Any]) -> Any:
    held = (value for name, value in outer.items() if isinstance(value, dict | list) and _MAY_HOLD.search(name))
    return next((value for value in held if (usage := usage_in(value)) and usage.output), None)


def _itself(outer: dict[str, Any]) -> Any:
    """Ollama tells its counts beside the answer itself."""
    flat = {name: value for name, value in outer.items() if not isinstance(value, dict | list)}
    return flat if (usage := usage_in(flat)) and usage.output else None


def _note(meter: UsageMeter, usage: msgspec.Raw, index: int | None) -> None:
    if index is None:
        meter.final(usage)
    else:
        meter.running(index, usage)


def _usage_in(raw: bytes) -> msgspec.Raw:
    try:
        return _holder.decode(raw).usage
    except msgspec.DecodeError:
        return NULL
