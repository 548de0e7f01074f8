"""`manage.py up` with everything in it, and what it does when a part is killed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.stack import banner
from headrace.stack.tests.running import Up, wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up") / "home", engine="llamacpp")
    try:
        yield up.wait_ready()
    finally:
        assert up.stop() == 0


def answer(up: Up, *, most: int = 5) -> str:
    command = banner.curl(up.demo["url"], up.demo["api_key"], "smollm2")
    command = command.replace('"stream": true', f'"stream": true, "max_tokens": {most}')
    return subprocess.run(["sh", "-c", command + " -s"], capture_output=True, text=True, check=False, timeout=60).stdout


def test_it_prints_a_curl_line_that_streams(up: Up) -> None:
    (line,) = [line for line in up.output.splitlines() if line.startswith("curl ")]
    assert line == banner.curl(up.demo["url"], up.demo["api_key"], "smollm2")
    events = answer(up, most=20).split("\n\n")
    assert len(events) > 5
    assert "data: [DONE]" in events


def test_it_tells_scripts_where_things_are_and_others_nothing(up: Up) -> None:
    assert up.demo["url"] == f"http://127.0.0.1:{up.port}"
    assert up.demo["tenant"] == "demo"
    for name in ("demo.json", "runtime.json", "secret", "valkey/valkey.conf"):
        assert (up.home / name).stat().st_mode & 0o077 == 0


def test_it_lets_the_administrator_in(up: Up) -> None:
    admin = up.demo["admin"]
    with httpx.Client(follow_redirects=True) as browser:
        entrance = browser.get(admin["url"])
        form = {"login": admin["username"], "password": admin["password"]}
        page = browser.post(
            str(entrance.url), data=form | {"csrfmiddlewaretoken": browser.cookies["csrftoken"], "next": "/admin/"}
        )
    assert page.status_code == 200
    assert page.url.path == "/admin/"


@pytest.mark.parametrize("part", ["postgres", "valkey", "engine", "web", "worker", "beat", "collector"])
def test_it_restarts_a_part_that_was_killed(up: Up, part: str) -> None:
    pid = up.pid(part)
    assert pid
    sign = f"{part:<9} {'started' if part in {'worker', 'beat', 'collector'} else 'ready after'}"
    starts = up.output.count(sign)
    os.kill(pid, signal.SIGKILL)
    assert up.replacement(part, pid)
    assert f"{part:<9} was ended by SIGKILL; starting it again" in up.output
    wait_until(lambda: up.output.count(sign) > starts, 30)
    wait_until(lambda: "[DONE]" in answer(up), 30)


def test_it_loses_nothing_stored_when_its_stores_are_killed(up: Up) -> None:
    runtime = json.loads((up.home / "runtime.json").read_text())
    with psycopg.connect(runtime["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS value")
    with redis.Redis.from_url(runtime["REDIS_URL"]) as client:
        client.set("kept", "42")
    for part in ("postgres", "valkey"):
        pid = up.pid(part)
        assert pid
        os.kill(pid, signal.SIGKILL)
        up.replacement(part, pid)
    wait_until(lambda: kept(runtime) == (42, b"42"), 20)


def kept(runtime: dict[str, str]) -> tuple[object, object] | None:
    try:
        with psycopg.connect(runtime["DATABASE_URL"]) as connection:
            row = connection.execute("SELECT value FROM kept").fetchone()
        with redis.Redis.from_url(runtime["REDIS_URL"], retry=Retry(NoBackoff(), 0)) as client:
            return (row and row[0], client.get("kept"))
    except (psycopg.OperationalError, redis.ConnectionError):
        return None


def test_it_refuses_a_second_one_on_its_home(up: Up) -> None:
    second = Up(up.home.with_name("second.home"), port=up.port)
    assert second.wait_ended() == 1
    assert f"port {up.port} is in use" in second.output
    third = Up(Path(f"{up.home}/"), port=up.port)
    assert third.wait_ended() == 1
    assert f"another `manage.py up` (process {up.process.pid}) runs on" in third.output
