"""What is no valid key is a 401 that says nothing of why, at once, under every server; and no key is ever logged."""

import json
import socket
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from headrace.gateway.tests.calling import Place
from tenants import keys
from tenants.api_keys import issue_key, revoke_key
from tenants.models import Tenant


def asked(site: Place, *headers: bytes) -> tuple[int, bytes]:
    """Status and body of a chat with exactly these header lines, off the wire; 0 for a connection that was dropped."""
    body = json.dumps(site.body()).encode()
    lines = [b"POST /v1/chat/completions HTTP/1.1", b"Host: x", b"Connection: close", *headers]
    lines += [b"Content-Length: %d" % len(body), b"", body]
    raw = b""
    with socket.create_connection(("127.0.0.1", site.web.port), timeout=10) as connection:
        try:
            connection.sendall(b"\r\n".join(lines))
            while piece := connection.recv(65536):
                raw += piece
        except ConnectionError:
            pass  # refused before it was all sent
    head, _, rest = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, rest


KEY = keys.mint().text.encode()
MALFORMED = {
    "none": [],
    "empty": [b"Authorization:"],
    "a scheme alone": [b"Authorization: Bearer"],
    "a scheme and a space": [b"Authorization: Bearer "],
    "another scheme": [b"Authorization: Basic " + KEY],
    "no scheme": [b"Authorization: " + KEY],
    "two spaces": [b"Authorization: Bearer  " + KEY],
    "a tab": [b"Authorization: Bearer\t" + KEY],
    "two words": [b"Authorization: Bearer " + KEY + b" " + KEY],
    "two keys": [b"Authorization: Bearer " + KEY + b", Bearer " + KEY],
    "two headers": [b"Authorization: Bearer " + KEY, b"Authorization: Bearer " + KEY],
    "a byte that is no text": [b"Authorization: Bearer sk-hr-\xff\xfe"],
    "quotes of a text editor": ["Authorization: Bearer sk-“x”".encode()],
    "an emoji": ["Authorization: Bearer sk-🔑".encode()],
    "a byte order mark": [b"Authorization: Bearer \xef\xbb\xbf" + KEY],
    "a key of 300": [b"Authorization: Bearer " + b"x" * 300],
    "a key of 8 KiB": [b"Authorization: Bearer " + b"x" * 8192],
    "another header": [b"X-API-Key: " + KEY],
    "an unknown key": [b"Authorization: Bearer " + KEY],
    "a short key": [b"Authorization: Bearer x"],
    "the beginning of a key": [b"Authorization: Bearer " + KEY[:40]],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_it_says_401_at_once(site: Place, name: str) -> None:
    began = time.monotonic()
    status, body = asked(site, *MALFORMED[name])
    assert time.monotonic() - began < 2
    assert status == 401, body
    error = json.loads(body)["error"]
    assert (error["code"], error["type"], error["param"]) == ("invalid_api_key", "authentication_error", None)
    assert KEY.decode()[:16] not in error["message"]


@pytest.mark.parametrize("value", [b"Bearer a\0b", b"Bearer " + b"x" * 65536, b"Bearer a\r\n b", b"Bearer \x01\x02"])
def test_it_or_its_server_refuses_what_no_header_may_hold(site: Place, value: bytes) -> None:
    began = time.monotonic()
    status, _ = asked(site, b"Authorization: " + value)
    assert status in {0, 400, 401, 431}
    assert time.monotonic() - began < 5


def test_it_takes_one_valid_key_however_the_scheme_is_written(site: Place) -> None:
    secret = site.world.secret.encode()
    assert asked(site, b"Authorization: Bearer " + secret)[0] == 200
    assert asked(site, b"authorization: bearer " + secret)[0] == 200
    assert asked(site, b"AUTHORIZATION: BEARER " + secret + b" ")[0] == 200  # the space is the header's, not the key's
    other = secret[:-1] + (b"a" if secret[-1:] != b"a" else b"b")
    for wrong in (secret[:-1], secret + b"x", other, secret.swapcase()):
        assert asked(site, b"Authorization: Bearer " + wrong)[0] == 401
    assert asked(site, b"Authorization: Bearer " + secret, b"Authorization: Bearer " + secret)[0] == 401


def test_it_takes_a_key_whose_text_an_operator_chose(place: Place) -> None:
    text = "correct-horse-battery-staple-2026!"
    issued = issue_key(project=place.world.project, name="chosen", minted=keys.adopt(text))
    place.wait_known(secret=text)
    assert place.chat(secret=text).record["key"] == issued.key.public_id


def test_it_refuses_dead_keys_and_logs_no_key_at_all(place: Place) -> None:
    """At the level DEBUG, for keys that are valid, revoked, expired, of a suspended tenant, and made up."""
    world, now = place.world, timezone.now()
    globex = world.add_tenant("globex")
    Tenant.objects.filter(pk=globex.pk).update(suspended_at=now)
    revoked, revoked_secret = world.add_key()
    revoke_key(key=revoked)
    dead = {
        "revoked": revoked_secret,
        "expired": world.add_key(expires_at=now - timedelta(seconds=1))[1],
        "suspended": world.add_key(globex.projects.create(slug="app", name="App"))[1],
        "unknown": keys.mint().text,
    }
    _, last = world.add_key()
    place.wait_known(secret=last)
    answers = [place.chat(secret=secret) for secret in dead.values()]
    assert [(answer.status, answer.error["code"]) for answer in answers] == [(401, "invalid_api_key")] * len(dead)
    assert place.chat(secret=last, metadata={"a": "b"}).status == 200
    log = place.web.log.read_text()
    for secret in [*dead.values(), last, world.secret]:
        assert secret not in log
        assert secret[18:-6] not in log
