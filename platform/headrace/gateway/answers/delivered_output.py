"""What of an answer has been delivered: how many events and bytes of each choice, and the text for whoever counts it.

It is what an upstream's own count is measured by: a figure that is too small for what came, or of a time before it, is
no count of it.
"""

from itertools import chain

# Stands for output that is no text, one token of it.
NO_TEXT = "\N{OBJECT REPLACEMENT CHARACTER}"

_TEXT_KEPT = 2**20
# A token may come in more events than one: a tool's name, its arguments; reasoning that ends in the middle of a piece.
SPARE_EVENTS = 64
# Some providers send a few characters at a time: only of a text as long as so many tokens mostly are it is too many.
USUAL_BYTES = 4
# No tokenizer has tokens of so many bytes, but for runs of one character: what is told of fewer cannot be true.
_MOST_BYTES = 256
# Of many events with much text, neither runs of one character nor single ones, a token has this much at most.
_MOST_EVENTS_A_TOKEN = 2
_MOST_BYTES_OF_MANY = 32
# Tokenizers begin anew with each word; there may be some that do not.
_MOST_WORDS = 4
_WORDS_OF = 128  # events: of more, those themselves say enough
# Calls that are parsed at the end come in as many events at a time, all with the same running count.
_FLUSHED_EVENTS = 16
# From so much on the tokens that an upstream told of a text say how many more text has.
_BYTES_OF_A_RATE = 16


class _Choice:
    """told_*: as of its last usage. first_*: as of its first that was more than nothing."""

    __slots__ = ("bytes", "events", "first_events", "told_bytes", "told_events")

    def __init__(self) -> None:
        self.events = self.bytes = self.told_events = self.told_bytes = 0
        self.first_events: int | None = None


class DeliveredOutput:
    """The output of one attempt as it came. events, bytes: of all choices. without_text: events of output that is no
    text."""

    __slots__ = ("_choices", "_keeps_text", "_texts", "_told_events", "bytes", "events", "without_text")

    def __init__(self) -> None:
        self.events = self.bytes = self.without_text = 0
        self._texts: dict[int, list[str]] = {}  # by choice
        self._keeps_text = True
        self._choices: dict[int, _Choice] = {}
        self._told_events = 0

    def add(self, text: str, index: int) -> None:
        """Take one event's worth of output of choice `index`."""
        # UTF-8 length without encoding where the string is ASCII, as most are.
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        choice = self._choice(index)
        choice.events += 1
        choice.bytes += size
        self.events += 1
        self.bytes += size
        if text == NO_TEXT:
            self.without_text += 1
        elif self._keeps_text:
            self._texts.setdefault(index, []).append(text)
            if self.bytes >= _TEXT_KEPT:
                self.drop_text()

    def drop_text(self) -> None:
        """Keep no text any more: an upstream counts, or it is too long."""
        self._keeps_text = False
        self._texts.clear()

    @property
    def texts(self) -> list[str] | None:
        """Each choice's, without those that have none; None where they were not kept."""
        texts = map("".join, self._texts.values())
        return [text for text in texts if text] if self._keeps_text else None

    # --- what upstreams tell of it ------------------------------------------------------------------------------------
    def note_told(self, index: int | None) -> None:
        """An upstream has counted choice `index`, or, where that is None, all of them, as far as they came and with the
        event that comes with its word."""
        self._told_events = self.events
        for choice in self._choices.values() if index is None else (self._choice(index),):
            choice.told_events, choice.told_bytes = choice.events, choice.bytes
            if choice.first_events is None:
                choice.first_events = choice.events

    def after_told(self) -> tuple[int, int]:
        """Events and bytes that came after the last usage that could have counted them, and with none.

        A usage comes before the text of its own event.
        """
        if self.events - self._told_events <= 1:
            return 0, 0
        events = size = 0
        for choice in self._choices.values():
            since = choice.events - choice.told_events
            spare = 1 if choice.first_events is not None else 0
            if since > spare:
                events += since - spare
                size += (choice.bytes - choice.told_bytes) * (since - spare) // since
        return events, size

    def has_grown(self, index: int, tokens: int) -> bool:
        """Whether more than so many tokens of a choice came between its first usage and its last, in many events."""
        choice = self._choice(index)
        events = choice.told_events - (choice.first_events or 0)
        return events > max(_FLUSHED_EVENTS, tokens) and choice.told_bytes > USUAL_BYTES * tokens

    def least(self, most: int) -> int:
        """The tokens that all of it is at least. A text that is more than `most` at that size is not measured by it."""
        by_bytes = self.bytes // _MOST_BYTES
        by_both = min(self.events // _MOST_EVENTS_A_TOKEN, self.bytes // _MOST_BYTES_OF_MANY)
        by_events = (self.events - SPARE_EVENTS) // USUAL_BYTES
        by_words = self._words() // _MOST_WORDS
        return max(by_events, *(each if each <= most else 0 for each in (by_bytes, by_both, by_words)))

    def _words(self) -> int:
        pieces = chain.from_iterable(self._texts.values())
        return sum(len(text.split()) for text in pieces) if self.events <= _WORDS_OF else 0

    def guess(self, bytes_per_token: float) -> int:
        """The tokens of all of it, by events or, where those are given, by bytes."""
        return _guess(self.events, self.bytes, bytes_per_token)

    def guess_after_told(self, told: int, bytes_per_token: float) -> int:
        """The tokens of what came after the upstream told of so many: by events, or by bytes as those had."""
        events, size = self.after_told()
        before = self.bytes - size
        if told > 0 and before >= _BYTES_OF_A_RATE:
            bytes_per_token = min(2 * bytes_per_token, max(bytes_per_token / 2, before / told))
            return round(size / bytes_per_token) if bytes_per_token > 0 else events
        return _guess(events, size, bytes_per_token)

    def _choice(self, index: int) -> _Choice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice()
        return choice


def _guess(events: int, size: int, bytes_per_token: float) -> int:
    return max(events, round(size / bytes_per_token)) if bytes_per_token > 0 else events
