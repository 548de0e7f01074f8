"""Each replica of a route is either a place of the request or left out for a reason that can be named."""

import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from engines.protocols import PROTOCOLS, Upstream
from routing.catalog import Replica, Route, Target
from routing.conditions import Conditions, Facts
from routing.held_tokens import HeldTokens
from routing.placement import Caps, Misfit, OperationSizes, default_output, explain, fit, rank
from routing.prefix_index import PrefixIndex
from routing.selection import PlacementRequest, Reading, Selection

READINGS = st.builds(
    Reading,
    is_usable=st.booleans(),
    is_last_resort=st.booleans(),
    state=st.just("down"),
    lacks=st.sampled_from([(), ("image",)]),
)
NAMES = [f"p{position}/r{number}" for position in range(3) for number in range(2)]
SOME = st.sets(st.sampled_from(NAMES))


class Watched:
    def __init__(self, readings: Mapping[str, Reading]) -> None:
        self._readings = readings

    def reading(self, replica: str) -> Reading:
        return self._readings[replica]


class Waiting:
    def __init__(self, names: set[str]) -> None:
        self._keys = {f"{name} m" for name in names}

    def wait(self, name: str, tenant: str | None = None) -> float:
        return 1.0 if name in self._keys else 0.0


def replica(name: str, engine: str = "sglang") -> Replica:
    return Replica(name, Upstream(PROTOCOLS[engine], "http://10.0.0.1:30000", "m"))


def target(position: int, **fields: object) -> Target:
    names = [name for name in NAMES if name.startswith(f"p{position}/")]
    return Target(f"p{position}", tuple(map(replica, names)), **fields)  # type: ignore[arg-type]


def route(*targets: Target) -> Route:
    return Route("chat", 0, 8192, 500, "tenant", "refuse", "least_loaded", 5, 60, 60, 600, targets)


def selection(readings: Mapping[str, Reading]) -> Selection:
    index = PrefixIndex(tokens=100_000, most=10_000)
    return Selection(index, HeldTokens(str), Watched(readings), dice=random.Random(1))


@given(
    readings=st.fixed_dictionaries(dict.fromkeys(NAMES, READINGS)),
    waiting=SOME,
    silent=SOME,
    tried=SOME,
    terms=st.lists(
        st.sampled_from([{}, {"canary": 50.0}, {"shadow": 50.0}, {"context_window": 300}, {"weight": 2}]),
        min_size=3,
        max_size=3,
    ),
    has_image=st.booleans(),
    may_fall_back=st.booleans(),
)
def test_each_replica_is_a_place_or_is_left_out_once(
    readings: dict[str, Reading],
    waiting: set[str],
    silent: set[str],
    tried: set[str],
    terms: list[dict[str, object]],
    has_image: bool,
    may_fall_back: bool,
) -> None:
    modalities = frozenset({"text", "image"} if has_image else {"text"})
    way = route(*(target(position, **each) for position, each in enumerate(terms)))
    request = PlacementRequest(200, 200, facts=Facts(200, 200, modalities), conversation=b"talk")
    sizes = OperationSizes(max_tokens=200, modalities=modalities, may_fall_back=may_fall_back)
    ranking = rank(
        way, request, sizes, Caps(), selection(readings), Waiting(waiting), lambda target: 200,
        silent=frozenset(f"{name} m" for name in silent), tried=[replica(name) for name in tried],
    )  # fmt: skip
    placed = [choice.replica.name for choice, _ in ranking.places]
    left_out = {one.replica: one.reason for one in explain(ranking)}
    assert sorted([*placed, *(name for name in left_out if name)]) == NAMES
    assert not set(placed) & (waiting | tried)
    assert all(name in silent for name, reason in left_out.items() if "silent" in reason)
    assert all(not readings[str(name)].is_usable for name, reason in left_out.items() if reason == "it is down")


def test_a_target_without_replicas_is_left_out_by_itself() -> None:
    way = route(Target("p0", ()), target(1, conditions=Conditions(min_prompt_tokens=1000)))
    readings = dict.fromkeys(NAMES, Reading())
    ranking = rank(
        way, PlacementRequest(10), OperationSizes(), Caps(), selection(readings), Waiting(set()), lambda target: 10
    )
    assert not ranking.places
    assert [(one.position, one.replica, one.reason) for one in explain(ranking)] == [
        (0, None, "it has no replica"),
        (1, "p1/r0", "min_prompt_tokens=1000: it has 0"),
        (1, "p1/r1", "min_prompt_tokens=1000: it has 0"),
    ]


def test_a_default_output_is_within_what_the_caps_let_all_choices_have() -> None:
    way = route(target(0))
    assert default_output(Caps(), way, 4) == 500
    assert default_output(Caps(output_limit=1000), way, 4) == 250
    assert default_output(Caps(output_limit=1000, max_output_tokens=100), way, 4) == 100
    assert default_output(Caps(output_limit=2), way, 4) == 1


def test_a_key_s_caps_are_told_before_the_window_of_the_target() -> None:
    way = route(target(0, context_window=300))
    fleet = selection(dict.fromkeys(NAMES, Reading()))
    found = fit(way, way.targets[0], OperationSizes(max_tokens=200), Caps(max_output_tokens=100), fleet, 200)
    assert isinstance(found, Misfit)
    assert (found.code, found.param) == ("request_too_large", "max_tokens")
