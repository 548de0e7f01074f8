"""Whether a JSON schema is one: only what is wrong in every draft (4 to 2020-12) is found wrong."""

from collections.abc import Generator
from typing import Any

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_ONE = ("additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_MOST_DEPTH = 64
_STEP = 500


class BadSchema(ValueError):
    """The message says where, as a JSON pointer, and what."""


def check_schema(schema: Any) -> Generator[None, None, None]:
    """Check the whole of a schema. Raises BadSchema; yields after each so many parts of it."""
    waiting, seen = [(schema, "#", 0)], 0
    while waiting:
        part, place, depth = waiting.pop()
        parts = _check(part, schema, place, depth)
        waiting += [(each, at, depth + 1) for each, at in reversed(parts)]
        seen += 1
        if seen % _STEP == 0:
            yield


def _check(schema: Any, root: Any, place: str, depth: int) -> list[tuple[Any, str]]:
    """Check one part; the schemas directly in it, each with its place."""
    if isinstance(schema, bool) and depth:
        return []
    if not isinstance(schema, dict):
        raise BadSchema(f"{place} is no object")
    if depth > _MOST_DEPTH:
        raise BadSchema(f"it is nested more than {_MOST_DEPTH} deep")
    _check_values(schema, place)
    if isinstance(reference := schema.get("$ref"), str):
        _check_reference(reference, root, place)
    parts = [(schema[name], f"{place}/{name}") for name in _ONE if name in schema]
    for name in _MANY:
        if name in schema:
            if not isinstance(schema[name], list) or not schema[name]:
                raise BadSchema(f"{place}/{name} is no list of schemas")
            parts += [(each, f"{place}/{name}/{number}") for number, each in enumerate(schema[name])]
    for name in _NAMED:
        if name in schema:
            if not isinstance(schema[name], dict):
                raise BadSchema(f"{place}/{name} is no object")
            parts += [(each, f"{place}/{name}/{key[:64]}") for key, each in schema[name].items()]
    items = schema.get("items", True)
    if isinstance(items, list):
        return parts + [(each, f"{place}/items/{number}") for number, each in enumerate(items)]
    return [*parts, (items, f"{place}/items")]


def _check_values(schema: dict[str, Any], place: str) -> None:
    if "type" in schema:
        named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not named or not all(isinstance(each, str) and each in _TYPES for each in named):
            raise BadSchema(f"{place}/type is none of {', '.join(sorted(_TYPES))}")
    if "enum" in schema and not isinstance(schema["enum"], list):
        raise BadSchema(f"{place}/enum is no list")
    required = schema.get("required", [])
    # Draft 3 had a boolean there, which some generators still write and engines pass over.
    if not isinstance(required, bool) and not (
        isinstance(required, list) and all(isinstance(each, str) for each in required)
    ):
        raise BadSchema(f"{place}/required is no list of names")
    for name in _COUNTS:
        count = schema.get(name, 0)
        if isinstance(count, bool) or not isinstance(count, int | float) or count < 0:
            raise BadSchema(f"{place}/{name} is no number of 0 or more")
    for name in ("$ref", "pattern"):
        if name in schema and not isinstance(schema[name], str):
            raise BadSchema(f"{place}/{name} is no text")


def _check_reference(reference: str, root: Any, place: str) -> None:
    """A pointer into the schema leads somewhere; other references are the engine's to follow or refuse."""
    if not reference.startswith("#/"):
        return
    found = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise BadSchema(f"{place}/$ref leads nowhere")
