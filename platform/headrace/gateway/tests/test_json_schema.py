"""Schemas that are none are found; what any draft or generator writes is left alone."""

from typing import Any

import pytest

from headrace.gateway.dialects.chat_completions.json_schema import BadSchema, check_schema

GOOD: list[Any] = [
    {},
    {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    },
    {"$defs": {"x": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
    {"definitions": {"x": True}, "anyOf": [{"$ref": "#/definitions/x"}, {"$ref": "#"}]},
    {"type": "array", "items": [{"type": "number"}], "minItems": 0},
    {"type": "array", "items": {"enum": ["a", 1, None]}, "maxItems": 3},
    {"properties": {"type": {"type": "string"}, "required": {"type": "boolean"}}},
    {"type": "string", "format": "date", "pattern": "^a", "title": "x", "default": 3, "examples": [], "nullable": True},
    {"properties": {"a": {"type": "string", "required": True}}},
    {"$ref": "https://json-schema.example/x"},
    {"exclusiveMinimum": True, "minimum": 3},
]
BAD: list[Any] = [
    None,
    [],
    "object",
    True,
    {"type": "strin"},
    {"type": []},
    {"type": 7},
    {"properties": []},
    {"properties": {"a": "string"}},
    {"properties": {"a": {"type": "array", "items": {"type": "int"}}}},
    {"required": "a"},
    {"required": [1]},
    {"anyOf": []},
    {"anyOf": {"type": "string"}},
    {"enum": "a"},
    {"minLength": -1},
    {"maxItems": "3"},
    {"$ref": "#/$defs/missing"},
    {"$ref": 3},
    {"pattern": 3},
]


@pytest.mark.parametrize("schema", GOOD)
def test_schema_passes(schema: Any) -> None:
    list(check_schema(schema))


@pytest.mark.parametrize("schema", BAD)
def test_schema_is_refused(schema: Any) -> None:
    with pytest.raises(BadSchema):
        list(check_schema(schema))


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {}
    for _ in range(1000):
        schema = {"not": schema}
    with pytest.raises(BadSchema):
        list(check_schema(schema))
