"""The test session's own servers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
import redis
from django.db import connections
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace_dev.testing.stores import Services

ONCE = Retry(NoBackoff(), 0)


@pytest.mark.django_db(databases=["default", "app"])
def test_it_connects_as_the_role_of_each_alias() -> None:
    for alias, role in (("default", "headrace_system"), ("app", "headrace_app")):
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT current_user")
            assert cursor.fetchone() == (role,)


def test_it_gives_settings_the_session_servers(services: Services) -> None:
    assert os.environ["DATABASE_URL"] == services.database_url
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        assert client.config_get("appendfsync")["appendfsync"] == "always"
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"


def test_it_refuses_valkey_without_the_password(services: Services) -> None:
    port = redis.Redis.from_url(services.redis_url).connection_pool.connection_kwargs["port"]
    with redis.Redis(port=port, retry=ONCE) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_it_leaves_nothing_running_when_the_session_is_killed(tmp_path: Path) -> None:
    script = (
        "import time; from headrace_dev.testing.stores import Services; s = Services(); s.start(); s.wait_ready();"
        "print(s.database_url, s.redis_url, flush=True); time.sleep(60)"
    )
    session = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert session.stdout
    database_url, redis_url = session.stdout.readline().split()
    session.send_signal(signal.SIGKILL)
    session.wait()
    session.stdout.close()
    deadline = time.monotonic() + 10
    while (answers(database_url) or answers(redis_url)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not answers(database_url)
    assert not answers(redis_url)


def answers(url: str) -> bool:
    try:
        if url.startswith("redis"):
            with redis.Redis.from_url(url, retry=ONCE) as client:
                client.ping()
        else:
            psycopg.connect(url.rsplit("/", 1)[0] + "/postgres").close()
    except (redis.ConnectionError, psycopg.OperationalError):
        return False
    return True
