"""What a situation on a real engine comes to, from requests whose times are known."""

import pytest

from headrace_dev.bench.fairness.clients import Asked
from headrace_dev.bench.fairness.situation import Situation


def asked(tenant: str, at: float, first: float | None = None, *, size: int = 90, prompt: int = 100) -> Asked:
    """Of five tokens, a tenth of a second apart; none where `first` is not given."""
    tokens = [] if first is None else [first + 0.1 * number for number in range(5)]
    return Asked(tenant, at, size, prompt, tokens)


def test_it_counts_what_was_served_between_its_two_moments() -> None:
    before, within, across = asked("acme", 1, 2), asked("acme", 5, 12), asked("acme", 6, 19.75)
    one = Situation([before, within, across, asked("globex", 5, 13)], 10, 20)
    assert one.served("acme") == pytest.approx((100 + 2 * 5 + 100 + 2 * 3) / 10)


def test_a_prompt_that_the_engine_has_not_told_counts_as_it_was_meant() -> None:
    one = Situation([asked("acme", 5, 12), asked("acme", 5, 12, size=200, prompt=0)], 10, 20)
    assert one.served("acme") == pytest.approx((100 + 200 + 2 * 10) / 10)


def test_a_request_without_a_token_counts_as_it_has_waited_and_earlier_ones_not() -> None:
    one = Situation([asked("acme", 9, 19), asked("acme", 11, 12), asked("acme", 13), asked("globex", 10)], 10, 20)
    assert one.ttft_p99("acme") == 7
