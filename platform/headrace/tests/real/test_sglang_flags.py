"""The flags that SGLang is started with: what they give is what Headrace relies on."""

import httpx
import pytest

from headrace_dev.testing.engine import Engine

pytestmark = [
    pytest.mark.sglang,
    pytest.mark.parametrize("engine", ["sglang"], indirect=True, scope="package"),
]


def test_it_publishes_its_load(engine: Engine) -> None:
    (load,) = httpx.get(f"{engine.url}/v1/loads?include=core", timeout=10).json()["loads"]
    assert load["num_waiting_reqs"] == 0
    assert load["max_total_num_tokens"] > 0


def test_it_takes_a_priority_and_counts_per_tenant(engine: Engine) -> None:
    body = {"messages": [{"role": "user", "content": "Name a river."}], "max_tokens": 2, "priority": 1}
    labels = {"x-custom-labels": '{"tenant": "acme"}'}
    answer = httpx.post(f"{engine.url}/v1/chat/completions", json=body, headers=labels, timeout=60)
    assert answer.status_code == 200, answer.text
    assert 'tenant="acme"' in httpx.get(f"{engine.url}/metrics", timeout=10).text
