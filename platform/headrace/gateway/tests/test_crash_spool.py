"""The spool's files: whole lines or none, one owner at a time, and what a dying process leaves."""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
import redis.asyncio

from billing.usage import UsageEvent, new_request_id
from headrace.gateway.settlement.final_settlement import Settlement
from headrace.gateway.settlement.spool import Spool
from headrace.gateway.settlement.spool_file import SpoolFile, adopt
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.stores import Services
from headrace_dev.testing.web import WebProcess
from tenants.meters import holds


def word(number: int = 0) -> Settlement:
    event = UsageEvent(
        request_id=str(new_request_id(1_790_000_000_000)),
        tenant="acme",
        project="app",
        key="key",
        model="model",
        target="target",
        replica="replica",
        status="ok",
        output_tokens=number,
        currency="USD",
        admitted_at="2026-09-21T15:06:40.000Z",
    )
    return Settlement(request_id=event.request_id, used={}, taken="[]", event=event)


def line(number: int = 0) -> bytes:
    return msgspec.json.encode(word(number)) + b"\n"


def asides(directory: Path) -> list[bytes]:
    """The lines that were set aside."""
    return [line for path in directory.glob("*.aside") for line in path.read_bytes().splitlines()]


@contextmanager
def tight_disk(size: int) -> Iterator[None]:
    """A disk on which a file has room for `size` bytes. For all of this process: pytest's own log may be longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_it_writes_a_whole_line_or_none(tmp_path: Path) -> None:
    file = SpoolFile(tmp_path / "1.jsonl")
    with tight_disk(1500):
        file.append(line(1))
        with pytest.raises(OSError, match="too large"):
            file.append(b"x" * 1500 + b"\n")
        file.append(b"short\n")
    assert file.path.read_bytes() == file.lines()[0] + b"\nshort\n"
    assert len(file.lines()) == 2
    file.close()


async def test_it_keeps_in_memory_what_the_disk_does_not_take(tmp_path: Path, services: Services) -> None:
    client = redis.asyncio.Redis.from_url(services.redis_url)
    (tmp_path / "spool").write_text("not a directory")
    spool = Spool(tmp_path / "spool", client)
    await spool.append(word(1))
    await spool.append(word(2))
    assert spool.pending == 2
    assert await spool.deliver_own()
    assert (spool.pending, await client.xlen(holds.USAGE)) == (0, 2)
    await client.aclose()


def test_it_has_one_owner_however_many_want_it(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    owner = SpoolFile(path)
    owner.append(line())
    assert adopt(path) is None
    owner.close()
    heirs = [heir for heir in (adopt(path) for _ in range(5)) if heir is not None]
    assert len(heirs) == 1
    heirs[0].remove()
    assert adopt(path) is None


def test_it_loses_no_line_to_an_heir_that_came_too_early(tmp_path: Path) -> None:
    """Between making its file and locking it, a process looks dead."""
    stop = threading.Event()

    def grab() -> None:
        while not stop.is_set():
            for path in tmp_path.glob("*.jsonl"):
                if (orphan := adopt(path)) is not None:
                    taken.extend(orphan.lines())
                    orphan.remove()

    taken: list[bytes] = []
    grabbing = threading.Thread(target=grab)
    grabbing.start()
    try:
        for number in range(300):
            file = SpoolFile(tmp_path / f"{number}.jsonl")
            file.append(b"line %d\n" % number)
            assert file.path.read_bytes() == b"line %d\n" % number
            file.close()
        eventually(lambda: not list(tmp_path.glob("*.jsonl")))
    finally:
        stop.set()
        grabbing.join()
    assert sorted(taken) == sorted(b"line %d" % number for number in range(300))


@pytest.mark.parametrize("key", ["hr:hold:", "hr:done:"])
async def test_word_that_redis_cannot_take_keeps_no_other_waiting(
    tmp_path: Path, services: Services, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = redis.asyncio.Redis.from_url(services.redis_url)
    await client.flushall()
    words = [word(number) for number in range(5)]
    await client.lpush(f"{key}{words[1].request_id}", "no hold")
    broken = words[3]
    await client.set(f"hr:done:{broken.request_id}", "reaped:no memory")
    orphan = SpoolFile(tmp_path / "0-dead.jsonl")
    for each in words:
        orphan.append(msgspec.json.encode(each) + b"\n")
    orphan.close()
    spool = Spool(tmp_path, client)
    await spool._deliver_orphans()
    entries: Any = await client.xrange(holds.USAGE)
    assert [msgspec.json.decode(fields[b"e"])["output_tokens"] for _, fields in entries] == [0, 2, 4]
    assert not orphan.path.exists()
    assert [msgspec.json.decode(each)["request_id"] for each in asides(tmp_path)] == [
        words[1].request_id,
        broken.request_id,
    ]
    for each in (words[1], broken):
        assert f"the settlement of {each.request_id} cannot be delivered and is set aside" in caplog.text
    await client.aclose()


async def test_own_word_that_redis_cannot_take_keeps_no_other_waiting(tmp_path: Path, services: Services) -> None:
    client = redis.asyncio.Redis.from_url(services.redis_url)
    await client.flushall()
    (tmp_path / "spool").write_text("not a directory")
    spool = Spool(tmp_path / "spool", client)
    words = [word(number) for number in range(4)]
    await spool.append(words[0])  # in memory
    await spool.append(words[1])
    (tmp_path / "spool").unlink()
    await spool.append(words[2])  # on disk
    await spool.append(words[3])
    for bad in (words[0], words[2]):
        await client.lpush(f"hr:hold:{bad.request_id}", "no hold")
    assert await spool.deliver_own()
    assert (spool.pending, await client.xlen(holds.USAGE)) == (0, 2)
    assert len(asides(tmp_path / "spool")) == 2
    await client.aclose()


async def test_words_wait_while_redis_takes_none(tmp_path: Path, services: Services) -> None:
    client = redis.asyncio.Redis.from_url(services.redis_url)
    await client.flushall()
    spool = Spool(tmp_path, client)
    await spool.append(word(1))
    await spool.append(word(2))
    await client.config_set("min-replicas-to-write", 1)
    try:
        assert not await spool.deliver_own()
    finally:
        await client.config_set("min-replicas-to-write", 0)
    assert not asides(tmp_path)
    assert await spool.deliver_own()
    assert (spool.pending, await client.xlen(holds.USAGE)) == (0, 2)
    await client.aclose()


def test_it_delivers_all_but_a_torn_last_line(
    services: Services, valkey: "redis.Redis", django_db_setup: None, tmp_path: Path
) -> None:
    """In a home of its own: of several processes that share one, whichever comes first says that a line is broken."""
    torn = tmp_path / "spool" / "0-dead.jsonl"
    torn.parent.mkdir(mode=0o700)
    torn.write_bytes(line(1) + line(2) + line(3)[:-40])
    web = WebProcess(tmp_path / "web.log", HEADRACE_HOME=str(tmp_path))
    try:
        eventually(lambda: not torn.exists(), 60)
        assert valkey.xlen(holds.USAGE) == 2
        assert "a broken line in 0-dead.jsonl" in web.log.read_text()
    finally:
        web.stop()
