"""What an upstream says beside the choices that clients want: its sources, and what served the answer.

An allow-list: the rest (ids, timings, metadata of the engine's own) may tell what is no client's business.
"""

import msgspec

from headrace.gateway.answers.raw_json import NULL
from headrace.gateway.answers.streamed_choices import on_one_line


class SaidBeside(msgspec.Struct):
    """The fields of an event or an answer that are passed on. Perplexity's and others' sources; OpenAI's own."""

    system_fingerprint: msgspec.Raw = NULL
    service_tier: msgspec.Raw = NULL
    citations: msgspec.Raw = NULL
    search_results: msgspec.Raw = NULL
    related_questions: msgspec.Raw = NULL
    images: msgspec.Raw = NULL

    @property
    def says_nothing(self) -> bool:
        """Whether none of them is there: in one comparison, since it is asked of each event."""
        return (
            NULL is self.system_fingerprint is self.service_tier is self.citations
            is self.search_results is self.related_questions is self.images
        )  # fmt: skip

    def fields(self) -> dict[str, bytes]:
        """Name and JSON of each that has the form clients know."""
        found = {name: bytes(raw) for name in _NAMES if (raw := getattr(self, name)) is not NULL}
        return {name: raw for name, raw in found.items() if raw in _TIERS or raw[:1] == _BEGINNINGS.get(name, b"[")}


_NAMES = SaidBeside.__struct_fields__
# A list where nothing else is said. A tier is one of those that are known.
_BEGINNINGS = {"system_fingerprint": b'"', "service_tier": b""}
_TIERS = frozenset({b'"auto"', b'"default"', b'"flex"', b'"scale"', b'"priority"'})


class Beside:
    """What was said beside the choices of one answer, so that nothing of it is lost where an event has no choices."""

    def __init__(self) -> None:
        self._said: dict[str, bytes] = {}
        self._waiting: dict[str, bytes] = {}

    def take(self, said: SaidBeside) -> None:
        """Note what an event says: what is new of it goes out with the next one."""
        if not said.says_nothing:
            new = {name: raw for name, raw in said.fields().items() if self._said.get(name) != raw}
            self._waiting |= new
            self._said |= new

    def next(self, said: SaidBeside) -> bytes:
        """What goes out with an event that says this itself, as JSON's `,"name":value`."""
        if said.says_nothing and not self._waiting:
            return b""
        fields = self._waiting | said.fields()
        self._said |= fields
        self._waiting = {}
        return _joined(fields)

    def rest(self) -> bytes:
        """What no event took along."""
        return _joined(self._waiting)

    def all(self) -> bytes:
        """For a whole answer: all that was said, the last of each."""
        return _joined(self._said)


def _joined(fields: dict[str, bytes]) -> bytes:
    return b"".join(b',"%b":%b' % (name.encode(), on_one_line(raw)) for name, raw in fields.items())
