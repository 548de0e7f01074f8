"""The embedded engine, as its own process."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from engines.launch import llamacpp, model_file

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "engines.launch.llamacpp", "--port", str(port)])
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    while not healthy(url):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield url
    process.terminate()
    process.wait(5)


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_it_streams_an_answer_with_usage(server: str) -> None:
    body = {
        "model": model_file.NAME,
        "messages": [{"role": "user", "content": "Name three rivers."}],
        "max_tokens": 8,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with httpx.stream("POST", f"{server}/v1/chat/completions", json=body, timeout=30) as answer:
        events = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 8


def test_it_has_a_context_of_its_own_for_each_slot(server: str) -> None:
    slots = httpx.get(f"{server}/slots").json()
    assert [slot["n_ctx"] for slot in slots] == [llamacpp.CONTEXT_PER_SLOT] * llamacpp.SLOTS


def test_it_answers_under_the_models_name(server: str) -> None:
    assert [model["id"] for model in httpx.get(f"{server}/v1/models").json()["data"]] == [model_file.NAME]
