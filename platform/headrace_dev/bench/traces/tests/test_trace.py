"""The routing trace: the same for the same seed, in the shape its file says, with constants from their source."""

from collections import Counter

import msgspec
import pytest

from engines.sizing.accelerators import accelerator
from engines.sizing.cards import model
from engines.sizing.replica import make
from headrace_dev.bench.traces import at_load, generate, load
from headrace_dev.simulator.fleet import prompt
from headrace_dev.simulator.fleet.cost import sized_profile


def test_its_replica_costs_what_sizing_says() -> None:
    told = load().replica
    sized = sized_profile(make(model("llama-3.1-8b"), accelerator("l40s")), name=told.name)
    assert told.kv_tokens == sized.kv_tokens
    assert told.source == sized.source
    for field in ("step", "weights", "token", "context", "attention"):
        assert getattr(told.costs, field) == pytest.approx(getattr(sized.costs, field), rel=1e-6)


def test_the_same_seed_gives_the_same_requests() -> None:
    shape = msgspec.structs.replace(load(), seconds=10.0)
    first, again, other = (generate(shape, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert [one.number for one in first.requests] == list(range(len(first.requests)))
    assert [one.at for one in first.requests] == sorted(one.at for one in first.requests)


def test_a_conversation_grows_by_its_own_answers() -> None:
    requests = generate(msgspec.structs.replace(load(), seconds=40.0), 3).requests
    turns = [one for one in requests if one.kind == "chat" and len(one.messages) >= 4]
    assert turns
    for turn in turns:
        before = turn.messages[:-2]
        answer = turn.messages[-2]["content"]
        assert turn.messages[-2]["role"] == "assistant"
        assert answer == prompt.answer(prompt.rendered(before), len(answer) // prompt.TOKEN)
        assert prompt.said(turn.messages[-1]["content"]) == turn.output


def test_the_shared_prefix_is_one_and_gets_hot() -> None:
    shape = load()
    shared = [one for one in generate(shape, 1).requests if one.is_shared]
    assert len({one.messages[0]["content"] for one in shared}) == 1
    assert len({one.tenant for one in shared}) == shape.tenants
    begin, end = shape.shared.hot
    hot = sum(begin <= one.at < end for one in shared) / (end - begin)
    assert hot == pytest.approx(shape.shared.rate + shape.shared.hot_rate, rel=0.2)


def test_more_load_is_more_of_everything() -> None:
    counts = [Counter(one.kind for one in generate(at_load(load(), factor), 1).requests) for factor in (0.5, 2)]
    assert all(counts[1][kind] > 2.5 * counts[0][kind] for kind in load().slos)
