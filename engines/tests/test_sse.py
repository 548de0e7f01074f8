"""The framer: the same events whatever the pieces, the line ends and what stands between."""

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sse import EventTooLarge, Framer


def chunk(text: str, usage: int | None = None) -> str:
    """One event's data, as SGLang writes it."""
    body = {
        "id": "505be20c55e64ebab4d9a7de411a9430",
        "object": "chat.completion.chunk",
        "created": 1795968635,
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": 42, "completion_tokens": usage, "total_tokens": 42 + usage}
    return json.dumps(body, ensure_ascii=False)


# The form of a recorded stream with running usage, with text of one to four bytes a character.
EVENTS = [chunk(""), *(chunk(text, at + 1) for at, text in enumerate(["The", " 你好", "🌍", " é", "\u2028"])), "[DONE]"]
RECORDED = "".join(f"data: {event}\n\n" for event in EVENTS).encode()
EXPECTED = [event.encode() for event in EVENTS]


def frames(*pieces: bytes) -> list[bytes]:
    framer = Framer()
    return [event for piece in pieces for event in framer.feed(piece)] + framer.end()


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_it_gives_the_same_events_for_every_two_way_split(eol: str) -> None:
    body = RECORDED.replace(b"\n", eol.encode())
    for at in range(len(body) + 1):
        assert frames(body[:at], body[at:]) == EXPECTED, at


def test_it_gives_the_same_events_byte_by_byte() -> None:
    assert frames(*(RECORDED[at : at + 1] for at in range(len(RECORDED)))) == EXPECTED


lines = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), max_size=40).map(
        "data: {}".format
    ),
    st.sampled_from([": ping", ":", "event: message", "id: 7", "retry: 10", "data", "data:", "data:x", ": PROCESSING"]),
)


@given(
    events=st.lists(st.lists(lines, min_size=1, max_size=4), max_size=8),
    eols=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=5),
    is_ended=st.booleans(),
    data=st.data(),
)
def test_it_gives_the_same_events_for_any_cuts(
    events: list[list[str]], eols: list[str], is_ended: bool, data: st.DataObject
) -> None:
    text, expected, turn = "", [], 0
    for event in events:
        for line in [*event, ""]:
            text += line + eols[turn % len(eols)]
            # A bare CR before an LF would be one line end: not what this test writes.
            turn += 0 if text.endswith("\r") and eols[(turn + 1) % len(eols)] == "\n" else 1
        values = [line[5:].removeprefix(" ") for line in event if line.startswith("data:")]
        if values:
            expected.append("\n".join(values).encode())
    if not is_ended:
        text = text.rstrip("\r\n")
    body = text.encode()
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=12).map(sorted))
    bounds = [0, *cuts, len(body)]
    pieces = [body[start:stop] for start, stop in itertools.pairwise(bounds)]
    assert frames(*pieces) == expected


def test_it_takes_cr_and_lf_in_two_reads_as_one_line_end() -> None:
    pieces = [b'data: {"a":1,\r', b'\ndata: "b":2}\r', b"\n\r", b"\n"]
    assert frames(*pieces) == [b'{"a":1,\n"b":2}']


def test_it_counts_an_event_that_the_end_of_the_body_cuts_off() -> None:
    assert frames(b"data: 1\n\ndata: 2") == [b"1", b"2"]
    assert frames(b"data: 1\n\ndata: 2\n") == [b"1", b"2"]
    assert frames(b"data: 1\n\n: ping") == [b"1"]
    assert frames() == []


def test_it_skips_a_byte_order_mark() -> None:
    body = b"\xef\xbb\xbfdata: 1\n\n"
    for at in range(len(body)):
        assert frames(body[:at], body[at:]) == [b"1"], at


def test_it_bounds_one_event_and_not_the_stream() -> None:
    small = b"data: " + b"x" * 90 + b"\n\n"
    framer = Framer(limit=100)
    for _ in range(50):
        assert framer.feed(small) == [b"x" * 90]
    assert Framer().feed(b"data: " + b"x" * (4 * 2**20 - 6) + b"\n\n") == [b"x" * (4 * 2**20 - 6)]


@pytest.mark.parametrize(
    "endless",
    [
        [b"data: ", *[b"x" * 10] * 20],  # one line
        [b"data: " + b"x" * 10 + b"\n"] * 20,  # many lines of one event
        [b": ", *[b"x" * 10] * 20],  # a comment
        [b"data: " + b"x" * 200 + b"\n\n"],  # whole in one read
    ],
)
def test_it_gives_up_on_an_event_beyond_the_limit(endless: list[bytes]) -> None:
    framer = Framer(limit=100)

    def feed_all() -> None:
        for piece in endless:
            framer.feed(piece)

    with pytest.raises(EventTooLarge):
        feed_all()


def test_it_puts_a_long_event_together_once_however_many_pieces_it_comes_in() -> None:
    event = b"data: " + b"x" * (4 * 2**20 - 100) + b"\n\n"
    began = time.process_time()
    assert frames(*(event[at : at + 512] for at in range(0, len(event), 512))) == [event[6:-2]]
    assert time.process_time() - began < 3  # copied anew with each piece, it takes twice that
