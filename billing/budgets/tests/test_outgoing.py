"""Addresses that tenants choose: what is inside stays out of reach, by whatever name, and nobody may dawdle."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import httpcore
import pytest

from billing.budgets import outgoing
from billing.budgets.outgoing import NotAllowed, check_url, post


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.test/",
        "ftp://hooks.test/",
        "https://",
        "https://user:secret@hooks.test/",
        "https://127.0.0.1/",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.1.1:8443/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.100.100.200/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://localhost/",
        "https://db.internal/",
        "https://b\u00fccher.test/",
        "https://hooks.test:99999/",
    ],
)
def test_it_refuses_an_address_that_may_not_be(url: str) -> None:
    with pytest.raises(NotAllowed):
        check_url(url)
    with pytest.raises(NotAllowed):
        post(url, body=b"{}", headers=[])


@pytest.mark.parametrize("url", ["https://hooks.test/a?b=c", "https://8.8.8.8/", "https://[2606:4700::1111]:8443/x"])
def test_it_takes_one_on_the_public_network(url: str) -> None:
    check_url(url)


# Each is 127.0.0.1 to the resolver, whatever it looks like.
@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "017700000001"])
def test_it_looks_at_what_a_name_resolves_to(host: str) -> None:
    with pytest.raises(NotAllowed, match=r"public network|not known"):
        post(f"https://{host}/", body=b"{}", headers=[])


def test_it_refuses_a_name_of_which_one_address_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 443)) for each in ("8.8.8.8", "10.0.0.1")]
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
        with pytest.raises(NotAllowed, match=r"hooks\.test is not on the public network"):
            post("https://hooks.test/", body=b"{}", headers=[])


@contextmanager
def server(answer: bytes, *, pause: float = 0) -> Iterator[int]:
    """A server that says `answer` to whoever comes, a byte at a time with `pause`; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            try:
                for byte in answer if pause else [answer]:
                    connection.sendall(byte if isinstance(byte, bytes) else bytes([byte]))
                    time.sleep(pause)
            except OSError:
                pass  # nobody listens any more

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()


@pytest.fixture
def inside(settings: Any) -> None:
    settings.WEBHOOK_HTTP, settings.WEBHOOK_NETWORKS = True, [ip_network("127.0.0.0/8")]


@pytest.mark.usefixtures("inside")
def test_it_follows_no_redirect_and_reads_no_body() -> None:
    answer = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 1000000000\r\n\r\nx"
    with server(answer) as port:
        assert post(f"http://127.0.0.1:{port}/", body=b"{}", headers=[("content-type", "application/json")]) == 302


@pytest.mark.usefixtures("inside")
def test_it_ends_by_a_deadline_however_slowly_the_other_side_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "SECONDS", 0.3)
    began = time.monotonic()
    with (
        server(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100, pause=0.05) as port,
        pytest.raises(httpcore.TimeoutException),
    ):
        post(f"http://127.0.0.1:{port}/", body=b"{}", headers=[])
    assert time.monotonic() - began < 5


@pytest.mark.usefixtures("inside")
def test_it_goes_where_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that answers otherwise the second time is not asked a second time."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **options: Any) -> Any:
        if host == "hooks.test":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return real(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with server(b"HTTP/1.1 204 No Content\r\n\r\n") as port:
        assert post(f"http://hooks.test:{port}/", body=b"{}", headers=[]) == 204
    assert asked == ["hooks.test"]
