"""The load against the scripted upstream itself."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from headrace_dev.bench import cpu
from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.bench.client import LAST_CHUNK, Answer, StreamFailed
from headrace_dev.bench.load import Spec
from headrace_dev.bench.measuring import load
from headrace_dev.simulator.process import ScriptedUpstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as process:
        yield process


def spec(upstream: ScriptedUpstream, *, seed: int = 1, model: str = "m") -> Spec:
    return Spec(
        port=upstream.port, rate=40, seconds=1, seed=seed, events=20, interval_ms=2, model=model, keys=["a", "b"]
    )


def test_it_streams_as_many_clients_as_arrive(upstream: ScriptedUpstream) -> None:
    upstream.reset()
    result = load(spec(upstream), "direct")
    assert 15 < len(result.ttft) < 80
    assert len(result.delays) == 20 * len(result.ttft)
    assert min(result.delays) > 0
    assert max(result.delays) < 5e9
    stats = upstream.stats()
    assert stats["finished"] == len(result.ttft)
    assert stats["tokens_sent"] == len(result.delays)
    assert {one["headers"]["authorization"] for one in upstream.requests()} == {"Bearer a", "Bearer b"}


def test_it_arrives_alike_with_the_same_seed(upstream: ScriptedUpstream) -> None:
    counts = [len(load(spec(upstream, seed=seed), "direct").ttft) for seed in (7, 7, 8, 9)]
    assert counts[0] == counts[1]
    assert len(set(counts)) > 1


def test_it_fails_loudly_when_streams_do(upstream: ScriptedUpstream) -> None:
    upstream.reset()
    with pytest.raises(BenchmarkFailed, match="streams failed"):
        load(
            Spec(port=upstream.port, rate=40, seconds=0.5, seed=1, events=20, interval_ms=2, model="m", timeout=0.01),
            "x",
        )


def event(number: int) -> bytes:
    return b'data: {"choices":[{"delta":{"content":"%d@%d "}}]}\n\n' % (number, time.monotonic_ns())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_it_reads_an_answer_cut_anywhere() -> None:
    whole = HEAD + b"".join(chunk(event(k)) for k in range(3)) + chunk(b"data: [DONE]\n\n") + LAST_CHUNK
    for at in range(1, len(whole)):
        answer = Answer(3)
        answer.take(whole[:at])
        answer.take(whole[at:])
        await asyncio.wait_for(answer.over, 1)
        assert len(answer.delays) == 3
    answer = Answer(3)
    for at in range(len(whole)):
        answer.take(whole[at : at + 1])
    await asyncio.wait_for(answer.over, 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "503"),
        (HEAD + chunk(event(1)), "event 1 came as number 0"),
        (HEAD + chunk(event(0)) + chunk(b"data: [DONE]\n\n") + LAST_CHUNK, "1 events instead of 3"),
    ],
)
async def test_it_tells_a_bad_answer_from_a_good_one(data: bytes, why: str) -> None:
    answer = Answer(3)
    answer.take(data)
    with pytest.raises(StreamFailed, match=why):
        await asyncio.wait_for(answer.over, 1)


def test_it_counts_the_cpu_of_a_process_and_its_children() -> None:
    burn = (
        "import subprocess,sys,time\nchild='t=__import__(\"time\");e=t.monotonic()+60\\nwhile t.monotonic()<e: pass'\n"
    )
    burn += "p=subprocess.Popen([sys.executable,'-c',child])\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", burn])
    try:
        until = time.monotonic() + 20
        while cpu.seconds(process.pid) < 0.5:
            assert time.monotonic() < until
            time.sleep(0.05)
        (child,) = cpu.descendants(process.pid)
        assert cpu.seconds(child) > 0.3
    finally:
        for pid in [*cpu.descendants(process.pid), process.pid]:
            subprocess.run(["kill", "-9", str(pid)], check=False)
        process.wait()
    with pytest.raises(ProcessLookupError):
        cpu.seconds(process.pid)
