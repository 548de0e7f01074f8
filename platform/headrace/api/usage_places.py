"""Where upstreams tell usage in an event or an answer: beside the choices, in a vendor's field, or in a choice."""

import msgspec

from headrace.api.beside import SaidBeside
from headrace.api.raw import NULL, is_empty
from headrace.api.usage_meter import UsageMeter


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
        return next((raw for raw in told if not is_empty(raw)), NULL)


class _Holder(msgspec.Struct):
    usage: msgspec.Raw = NULL


class _Choice(_Holder):
    index: int | None = None


_holder = msgspec.json.Decoder(_Holder)
_choices = msgspec.json.Decoder(list[_Choice])


def note_usage(told: UsagePlaces, choices: msgspec.Raw, meter: UsageMeter, *, index: int | None) -> None:
    """Take what is told of the use: of choice `index` so far, or, where that is None, of the whole request."""
    if not is_empty(told.usage):
        _note(meter, told.usage, index)
    elif not is_empty(vendor := told.of_vendor):
        meter.final(vendor)
    elif b'"usage"' in bytes(choices):
        _note_of_choices(bytes(choices), meter)
    if not is_empty(told.timings):
        meter.timings(index or 0, told.timings)


def _note_of_choices(choices: bytes, meter: UsageMeter) -> None:
    try:
        found = _choices.decode(choices)
    except msgspec.DecodeError:
        return
    for place, choice in enumerate(found):
        if not is_empty(choice.usage):
            meter.running(place if choice.index is None else choice.index, choice.usage)


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
