"""Paths, methods and models that are not there: OpenAI's envelope under every server, and no other model's door."""

import json
import socket
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/chat/completions/", "/v1/embeddings", "/v1/files/x", "/v1/%00", "/chat/completions", "//v1/x"],
)
def test_it_says_404_in_its_own_form(site: Place, path: str, method: str) -> None:
    answer = site.send(b"{}", path=path, method=method)
    assert (answer.status, answer.error["code"]) == (404, "not_found"), answer.raw
    assert answer.id


def test_it_says_which_method_a_path_takes(site: Place) -> None:
    for path, method, allowed in (
        ("/v1/chat/completions", "GET", "POST"),
        ("/v1/chat/completions", "HEAD", "POST"),
        ("/v1/chat/completions", "PUT", "POST"),
        ("/v1/models", "POST", "GET, HEAD"),
        ("/v1/models", "DELETE", "GET, HEAD"),
        ("/healthz", "POST", "GET, HEAD"),
        ("/metrics", "POST", "GET, HEAD"),
    ):
        answer = site.send(b"", path=path, method=method)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/healthz", "/readyz", "/metrics", "/v1/nothing"])
def test_it_answers_head_as_get_without_a_body(site: Place, path: str) -> None:
    """Read off the wire: what a client passes over would be the beginning of the next answer."""
    status = b"HTTP/1.1 404" if path == "/v1/nothing" else b"HTTP/1.1 200"
    head = f"HEAD {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.world.secret}\r\n"
    with socket.create_connection(("127.0.0.1", site.web.port), timeout=10) as connection:
        connection.sendall(f"{head}\r\n".encode())
        first = b""
        while b"\r\n\r\n" not in first:
            first += connection.recv(65536)
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        second = b""
        while piece := connection.recv(65536):
            second += piece
    for answer in (first, second):
        assert answer.startswith(status)
        assert answer.endswith(b"\r\n\r\n")
        assert answer.count(b"\r\n\r\n") == 1
        assert b"content-length: 0" not in answer.lower()


def test_it_shows_and_finds_models(site: Place) -> None:
    listed = site.send(b"", path="/v1/models", method="GET").json
    [model] = [model for model in listed["data"] if model["id"] == site.world.model]
    assert listed["object"] == "list"
    assert (model["object"], model["owned_by"], model["context_window"]) == ("model", "headrace", 100_000)
    assert site.send(b"", path=f"/v1/models/{site.world.model}", method="GET").json == model
    quoted = "".join(f"%{ord(letter):02x}" for letter in site.world.model)
    assert site.send(b"", path=f"/v1/models/{quoted}", method="GET").json == model
    assert site.send(b"", path="/v1/models/none", method="GET").error["code"] == "model_not_found"


@pytest.fixture(scope="module")
def one_model(place: Place) -> tuple[str, str]:
    """A key for one of two models, and the other's name."""
    other = place.add_model()
    _, secret = place.world.add_key(models=[place.world.model])
    place.wait_known(secret=secret)
    place.wait_known(other)
    return secret, other


def test_it_hides_a_model_from_a_key_that_may_not_call_it(place: Place, one_model: tuple[str, str]) -> None:
    """It looks as if it did not exist: the same words, the same status."""
    secret, other = one_model
    place.upstream.reset()
    hidden, unknown = (place.chat(secret=secret, model=name) for name in (other, "x" * len(other)))
    assert (hidden.status, hidden.error["code"], hidden.error["param"]) == (404, "model_not_found", "model")
    assert hidden.error["message"].replace(other, "") == unknown.error["message"].replace("x" * len(other), "")
    assert unknown.status == 404
    for path in (f"/v1/models/{other}", "/v1/models/none"):
        assert place.send(b"", path=path, method="GET", secret=secret).status == 404
    listed = place.send(b"", path="/v1/models", method="GET", secret=secret).json
    assert [model["id"] for model in listed["data"]] == [place.world.model]
    assert place.upstream.requests() == []


def test_it_calls_no_model_by_a_name_like_its_own(place: Place, one_model: tuple[str, str]) -> None:
    secret, _ = one_model
    name = place.world.model
    place.upstream.reset()
    alike = [name.upper(), f"{name} ", f" {name}", f"{name}\n", f"{name}\0", f"vendor/{name}", f"./{name}", f"{name}/"]
    alike += [
        name.replace("o", "\u043e"),
        name.replace("m", "\uff4d"),
        f"{name}\u200b",
        f"%{name}",
        "*",
        "..",
        "default",
    ]
    for model in alike:
        answer = place.chat(secret=secret, model=model)
        assert (answer.status, answer.error["code"]) == (404, "model_not_found"), model
    assert place.upstream.requests() == []


def test_it_sends_the_model_it_authorised(place: Place, one_model: tuple[str, str]) -> None:
    """Of a name given twice, one; no other place of a request names a model."""
    secret, other = one_model
    mine = place.world.model
    good: dict[str, Any] = place.body()
    rest = json.dumps({"messages": good["messages"]})[1:]

    def twice(first: str, second: str) -> bytes:
        return f'{{"model":"{first}","model":"{second}",{rest}'.encode()

    place.upstream.reset()
    for body, path, headers in (
        (json.dumps(good), f"/v1/chat/completions?model={other}", {}),
        (json.dumps(good), "/v1/chat/completions", {"x-model": other, "x-headrace-model": other}),
        (twice(other, mine), "/v1/chat/completions", {}),
    ):
        data = body if isinstance(body, bytes) else body.encode()
        answer = place.send(data, path=path, headers=headers, secret=secret)
        assert answer.status == 200, answer.raw
        assert answer.json["model"] == answer.record["model"] == mine
    seen = len(place.upstream.requests())
    assert place.send(twice(mine, other), secret=secret).status == 404
    assert place.chat(secret=secret, extra_body={"model": other}).status == 400
    azure = place.send(json.dumps(good).encode(), path=f"/openai/deployments/{other}/chat/completions", secret=secret)
    assert azure.status in {403, 404}
    assert len(place.upstream.requests()) == seen
