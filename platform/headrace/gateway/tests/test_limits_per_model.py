"""Limits for one model, cached input that counts for less, and refusals that say truly when to come again."""

import time
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import prompt
from tenants.models import ModelLimits, Project


def test_it_limits_one_model_beside_all(place: Place) -> None:
    other = place.add_model()
    key, secret = place.world.add_key(requests_per_minute=5)
    ModelLimits.objects.create(
        tenant=place.world.tenant, key=key.public_id, model=place.world.model, requests_per_minute=2
    )
    place.wait_known(other, secret=secret)
    answers = [place.chat("Hello", secret=secret, max_tokens=1) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert f"The model {place.world.model}'s limit of 2 requests per minute" in answers[-1].error["message"]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["1", "0", "0"]
    answers = [place.chat("Hello", secret=secret, model=other, max_tokens=1) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429], "what was refused took nothing"


@pytest.mark.parametrize("limit", ["requests_per_minute", "output_tokens_per_minute"])
def test_the_time_to_wait_is_true(place: Place, limit: str) -> None:
    limits: dict[str, Any] = {limit: 40 if limit == "requests_per_minute" else 1200}
    _, secret = place.world.add_key(**limits)
    place.wait_known(secret=secret)
    cost = 1 if limit == "requests_per_minute" else 30
    for _ in range(60):
        answer = place.chat(prompt(tokens=cost), secret=secret, max_tokens=cost)
        if answer.status == 429:
            break
    assert answer.error["code"] == "rate_limit_exceeded"
    assert answer.headers[f"x-ratelimit-limit-{limit.partition('_per')[0].replace('_', '-')}"]
    time.sleep(int(answer.headers["retry-after-ms"]) / 1000)
    assert place.chat(prompt(tokens=cost), secret=secret, max_tokens=cost).status == 200


def test_cached_input_counts_for_less(place: Place) -> None:
    used = []
    for weight in (1.0, 0.0):
        tenant = place.world.add_tenant(f"cached{int(weight)}")
        tenant.cached_input_weight = weight
        tenant.save()
        project = Project.objects.create(tenant=tenant, slug="app", name="App")
        _, secret = place.world.add_key(project, input_tokens_per_minute=1_000_000)
        place.wait_known(secret=secret)
        first = place.chat(prompt(prompt_tokens=60_000, cached_tokens=50_000), secret=secret, max_tokens=5)
        assert first.record["input_tokens"] == 60_000
        assert first.record["cached_input_tokens"] == 50_000
        last = place.chat("Hello", secret=secret, max_tokens=5)
        used.append(1_000_000 - int(last.headers["x-ratelimit-remaining-input-tokens"]))
    refilled = 35_000  # two seconds at most
    assert 60_000 - refilled < used[0]
    assert used[1] <= 11_000
