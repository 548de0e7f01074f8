"""The real SGLang, with the flags that Headrace relies on."""

import httpx
import pytest

pytestmark = pytest.mark.sglang

BODY = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "Name three rivers in Europe, and say where each begins and ends."}],
    "max_tokens": 8,
    "priority": 1,
}


def cached_tokens(url: str, salt: str) -> int:
    answer = httpx.post(f"{url}/v1/chat/completions", json=BODY | {"cache_salt": salt}, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_it_reports_cached_tokens_per_salt(sglang_url: str) -> None:
    assert cached_tokens(sglang_url, "first") == 0
    assert cached_tokens(sglang_url, "first") > 30
    assert cached_tokens(sglang_url, "second") == 0


def test_it_publishes_its_load(sglang_url: str) -> None:
    (load,) = httpx.get(f"{sglang_url}/v1/loads?include=core").json()["loads"]
    assert load["num_running_reqs"] == 0
    assert load["max_total_num_tokens"] > 0


def test_it_counts_per_tenant(sglang_url: str) -> None:
    labels = {"x-custom-labels": '{"tenant": "acme"}'}
    httpx.post(f"{sglang_url}/v1/chat/completions", json=BODY, headers=labels, timeout=60).raise_for_status()
    metrics = httpx.get(f"{sglang_url}/metrics").text
    assert 'tenant="acme"' in metrics
