"""The addresses of the two stores mean the same to every library that is told them."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from django.db import connections

from headrace.stack.parts import valkey as valkey_part
from headrace_core import addresses, env
from headrace_dev.testing.stores import Services


def connection_parameters(url: str) -> dict[str, Any]:
    """What Django's backend would connect with."""
    made = connections.create_connection("default")
    made.settings_dict = made.settings_dict | addresses.database(url, "headrace_app")
    parameters: dict[str, Any] = made.get_connection_params()
    return parameters


def test_it_takes_tls_and_further_options_from_the_address_of_the_database() -> None:
    url = "postgresql://al%40ice:p%2Fw@db.example:6432/my%20base?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=3"
    got = connection_parameters(url)
    assert (got["sslmode"], got["sslrootcert"], got["connect_timeout"]) == ("verify-full", "/ca.pem", "3")
    assert (got["user"], got["password"], got["dbname"]) == ("al@ice", "p/w", "my base")
    assert (got["host"], str(got["port"])) == ("db.example", "6432")
    assert got["options"].endswith("-c role=headrace_app")


def test_it_takes_several_hosts_of_which_one_may_be_written_to() -> None:
    url = "postgresql://u@one.example:5432,two.example:5433/headrace?target_session_attrs=read-write"
    got = connection_parameters(url)
    assert (got["host"], got["port"]) == ("one.example,two.example", "5432,5433")
    assert got["target_session_attrs"] == "read-write"


def test_it_keeps_the_options_of_the_address_beside_the_role() -> None:
    got = connection_parameters("postgresql://u@h/d?options=-c%20statement_timeout%3D7s")
    assert got["options"] == "-c statement_timeout=7s -c role=headrace_app"


@pytest.mark.parametrize("url", ["mysql://u:geheim@h/d", "postgresql://u:geheim@h/d?nonsense=1"])
def test_it_says_which_address_is_none_and_tells_no_password(url: str) -> None:
    with pytest.raises(env.BadSetting, match="DATABASE_URL") as raised:
        connection_parameters(url)
    assert "geheim" not in str(raised.value)


@pytest.mark.django_db(databases=["default"])
def test_it_notices_a_database_that_is_gone_without_a_word(services: Services) -> None:
    """Its connections ask whether the other side is still there."""
    connections["default"].ensure_connection()
    connection: Any = connections["default"].connection
    told = dict(part.split("=", 1) for part in connection.info.dsn.split() if "=" in part)
    assert int(told["keepalives_idle"]) + int(told["keepalives_interval"]) * int(told["keepalives_count"]) <= 30
    assert int(told["tcp_user_timeout"]) <= 30_000
    assert int(told["connect_timeout"]) <= 10


def broker_parameters(url: str) -> dict[str, Any]:
    """What Celery's transport would connect with."""
    address, tls = addresses.broker(url)
    app = Celery(set_as_current=False)
    app.conf.update(broker_url=address, broker_use_ssl=tls, broker_transport_options=addresses.BROKER_OPTIONS)
    connection = app.connection_for_write()
    channel = connection.transport.Channel
    made = object.__new__(channel)
    made.connection = type("", (), {"client": connection, "default_port": 6379})()
    for name, value in addresses.BROKER_OPTIONS.items():
        setattr(made, name, value)
    parameters: dict[str, Any] = made._connparams()
    return parameters


@pytest.mark.parametrize("query", ["", "?ssl_cert_reqs=required", "?ssl_ca_certs=/ca.pem"])
def test_it_believes_no_certificate_of_redis_unseen(query: str) -> None:
    got = broker_parameters(f"rediss://u:p%40w@r.example:6380/2{query}")
    assert issubclass(got["connection_class"], redis.SSLConnection)
    assert got["ssl_cert_reqs"] == "required"
    assert (got["username"], got["password"], got["host"], got["port"], got["db"]) == ("u", "p@w", "r.example", 6380, 2)
    assert got.get("ssl_ca_certs") == ("/ca.pem" if "ssl_ca_certs" in query else None)


def test_it_obeys_who_asks_for_tls_unverified() -> None:
    assert broker_parameters("rediss://r.example?ssl_cert_reqs=none")["ssl_cert_reqs"] == "none"


def test_it_takes_what_only_redis_s_own_client_knows_of_an_address() -> None:
    got = broker_parameters("redis://r.example/1?health_check_interval=5&protocol=2")
    assert (got["host"], got["db"]) == ("r.example", 1)
    assert broker_parameters("redis://[::1]:6399")["host"] == "::1"


@pytest.fixture
def socket_path(tmp_path: Path) -> Iterator[Path]:
    """A server that listens at a path alone."""
    path = tmp_path / "valkey.sock"
    server = subprocess.Popen(
        [valkey_part._binary(), "--port", "0", "--unixsocket", path, "--requirepass", "p@ss", "--save", ""],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        deadline = time.monotonic() + 10
        while not path.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield path
    finally:
        server.kill()
        server.wait()


def test_it_sends_work_through_a_socket(socket_path: Path) -> None:
    url = f"unix://{socket_path}?db=3&password=p%40ss"
    address, tls = addresses.broker(url)
    app = Celery(set_as_current=False)
    app.conf.update(broker_url=address, broker_use_ssl=tls, broker_transport_options=addresses.BROKER_OPTIONS)
    app.send_task("some.work", ignore_result=True)
    with redis.Redis.from_url(url) as client:
        assert client.llen("hr:celery:celery") == 1
