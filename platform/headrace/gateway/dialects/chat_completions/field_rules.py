"""Rules between the fields of a chat, and JSON schemas: what every engine refuses, refused here, by name.

Engines answer these with a 400 each in its own words, some with a 500.
"""

from collections.abc import Generator
from typing import Any

import msgspec

from headrace.gateway.dialects.chat_completions.json_schema import BadSchema, check_schema
from headrace.gateway.errors import ApiError


def check_rules(fields: dict[str, msgspec.Raw]) -> Generator[None, None, None]:
    """Check fields that engines get, each of which is sound by itself. Raises ApiError; yields after each schema."""
    if "top_logprobs" in fields and bytes(fields.get("logprobs", b"")) != b"true":
        raise ApiError("invalid_request", "'top_logprobs' needs 'logprobs' to be true.", param="top_logprobs")
    if "response_format" in fields:
        wanted = msgspec.json.decode(fields["response_format"])
        yield
        yield from _check_format(wanted)
    if "logit_bias" in fields:
        for token in msgspec.json.decode(fields["logit_bias"], type=dict[str, Any]):
            if not (token.isascii() and token.isdecimal()):
                raise ApiError("invalid_request", "The keys of 'logit_bias' are ids of tokens.", param="logit_bias")
    if "tools" in fields:
        tools = msgspec.json.decode(fields["tools"])
        yield
        yield from _check_tools(tools, fields.get("tool_choice"))


def _check_format(wanted: dict[str, Any]) -> Generator[None, None, None]:
    if wanted["type"] != "json_schema":
        return
    described = wanted.get("json_schema")
    if not isinstance(described, dict):
        raise ApiError("invalid_request", "'response_format' lacks its 'json_schema'.", param="response_format")
    # Some clients send the schema itself in its place.
    schema = described.get("schema", {} if "name" in described else described)
    yield from _check_schema(schema, "response_format")


def _check_tools(tools: list[dict[str, Any]], choice: msgspec.Raw | None) -> Generator[None, None, None]:
    names = set()
    for tool in tools:
        names.add(tool["function"]["name"])
        if (parameters := tool["function"].get("parameters")) is not None:
            yield from _check_schema(parameters, "tools")
            yield
    chosen = msgspec.json.decode(choice) if choice is not None else None
    if isinstance(chosen, dict) and (function := chosen.get("function")) and function["name"] not in names:
        raise ApiError("invalid_request", "'tool_choice' names a function that is not in 'tools'.", param="tool_choice")


def _check_schema(schema: Any, param: str) -> Generator[None, None, None]:
    try:
        yield from check_schema(schema)
    except BadSchema as error:
        raise ApiError("invalid_request", f"Invalid JSON schema in '{param}': {error}", param=param) from None
