"""How many replicas are wanted: from the queue and the cache, up quickly and down slowly."""

import pytest

from engines.load.figures import Load
from engines.load.scaling import Desired, wanted


def loads(count: int, **figures: float) -> list[Load]:
    return [Load(**figures)] * count  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"kv_used": 0.75}, 4),
        ({"kv_used": 0.8}, 4),  # within the tolerance
        ({"kv_used": 0.95}, 6),
        ({"kv_used": 0.3}, 2),
        ({"kv_used": 0.0, "waiting": 0}, 1),
        ({"kv_used": 0.5, "waiting": 8}, 8),
        ({"kv_used": 0.5, "waiting": 400}, 9),  # at most twice and one
        ({"kv_used": 0.5, "waiting_tokens": 24_576}, 6),
    ],
)
def test_it_follows_what_presses_most(figures: dict[str, float], expected: int) -> None:
    assert wanted(4, 4, loads(4, **figures)) == expected


def test_it_wants_what_is_up_where_nothing_is_known() -> None:
    assert wanted(2, 3, []) == 3
    assert wanted(0, 0, []) == 1
    assert wanted(2, 2, [Load(kv_used=0.9), Load()]) == 3


def test_it_rises_after_some_seconds_of_pressure_and_not_for_a_blip() -> None:
    desired = Desired(2)
    assert [desired.next(second, 2) for second in range(20)][-1] == 2
    assert desired.next(20, 5) == 2
    assert desired.next(21, 2) == 2
    assert [desired.next(second, 4) for second in range(22, 40)][-1] == 4


def test_it_falls_only_after_minutes_of_calm() -> None:
    desired = Desired(4)
    assert {desired.next(second, 1) for second in range(290)} == {4}
    assert [desired.next(second, 1) for second in range(290, 310)][-1] == 1
