"""Every collection of a request has a bound, and what is beyond it is refused by name."""

import json
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place

HELLO = [{"role": "user", "content": "Hello"}]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tool(parameters: dict[str, Any] | None = None, name: str = "f") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {}}}


BEYOND: list[tuple[str, Any, str]] = [
    ("logit_bias", {str(number): 1 for number in range(1025)}, "1024"),
    ("logit_bias", {str(number): 1 for number in range(400_000)}, "50000"),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": "x"}] * 2049}], "2048"),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": "x"}] * 200_000}], "50000"),
    ("messages", HELLO * 10_001, "10000"),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "h" * 9000}}]}], "8192"),
    ("tools", [tool()] * 129, "128"),
    ("tools", [tool(nested(40))], "64 levels"),
    ("tools", [tool({"description": "x" * 2**20})], "1048576"),
    ("tools", [tool(name="x" * 257)], "256"),
    ("tools", [tool({"enum": list(range(60_000))})], "50000"),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "n", "schema": nested(40)}}, "64 levels"),
    ("stop", ["x"] * 17, "16"),
    ("stop", ["x" * 1025], "1024"),
    ("stop", ["x"] * 200_000, "50000"),
    ("metadata", {f"k{number}": "x" for number in range(17)}, "16"),
    ("metadata", {"k" * 65: "x"}, "64"),
    ("user", "x" * 513, "512"),
    ("model", "x" * 201, "200"),
    ("n", 129, "128"),
    ("prediction", {"type": "content", "content": ["x"] * 60_000}, "50000"),
    ("unheard_of", ["x"] * 6000, "5000"),
]


@pytest.mark.parametrize(("name", "value", "bound"), BEYOND)
def test_what_is_beyond_its_bound_is_refused_by_name(place: Place, name: str, value: Any, bound: str) -> None:
    answer = place.send(json.dumps(place.body() | {name: value}).encode())
    assert answer.status == 400, answer.raw[:300]
    assert bound in answer.error["message"] or name == "unheard_of"
    assert answer.error["param"] in {name, None}
    assert name in answer.error["message"] or bound in answer.error["message"]
    assert len(answer.raw) < 1000


def test_a_body_of_many_small_values_is_refused(place: Place) -> None:
    for value in (b"[" + b"[]," * 300_000 + b"[]]", b'{"a":' * 100_000 + b"1" + b"}" * 100_000):
        body = b'{"model":"%s","messages":[{"role":"user","content":"x"}],"tools":%s}' % (
            place.world.model.encode(),
            value,
        )
        answer = place.send(body)
        assert (answer.status, answer.error["param"]) == (400, "tools")
    keys = b",".join(b'"k%d":1' % number for number in range(40_000))
    answer = place.send(b'{"model":"m","messages":[],' + keys + b"}")
    assert (answer.status, "not known" in answer.error["message"]) == (400, True)


def test_a_long_name_is_not_told_back(place: Place) -> None:
    for body in ({"x" * 100_000: 1}, {"messages": [{"role": "user", "content": "x", "y" * 100_000: 1}]}):
        answer = place.send(json.dumps(place.body() | body).encode())
        assert answer.status == 400
        assert len(answer.raw) < 2000


def test_what_is_within_its_bounds_is_served(place: Place) -> None:
    large = {
        "messages": [{"role": "user", "content": f"turn {number}"} for number in range(5000)] + HELLO,
        "tools": [tool(nested(25), name=f"f{number}") for number in range(128)],
        "logit_bias": {str(number): 1 for number in range(1024)},
    }
    answer = place.send(json.dumps(place.body(max_tokens=5) | large).encode())
    assert answer.status == 200, answer.raw
    text = 'Grüße, 世界! "quoted"\n' * 150_000
    answer = place.chat(text, max_tokens=5)
    assert answer.status == 200, answer.raw
