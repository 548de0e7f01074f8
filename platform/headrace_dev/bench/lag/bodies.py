"""The worst bodies that the API takes: as large as HEADRACE_BODY_LIMIT lets them be, and as full as their bounds do."""

import json
from typing import Any

from headrace.gateway.dialects.chat_completions import bounds


def worst_bodies(model: str, size: int) -> dict[str, bytes]:
    """Legal chats of almost `size` bytes each, by what is bad about them."""

    def chat(messages: list[dict[str, Any]], *, is_ascii: bool = True, **fields: Any) -> bytes:
        body = {"model": model, "max_tokens": 1, "messages": messages, **fields}
        return json.dumps(body, ensure_ascii=is_ascii).encode()

    def says(content: Any) -> list[dict[str, Any]]:
        return [{"role": "user", "content": content}]

    room = size - 8192
    values = bounds.MOST_VALUES - 1000
    parts = min(values // 3, 16_000)
    part = {"type": "text", "text": "x" * (room // parts - 40)}
    messages = 10_000
    calls = values // 8
    call = {"id": "c" * 20, "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string", "title": "x" * 8} for n in range(90)}}
    large = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(values // 3)}}
    tools = [_tool(f"f{n}", schema) for n in range(128)]
    return {
        "one text": chat(says("The quick brown fox. " * (room // 21))),
        "one text, three bytes a character": chat(says("你好世" * (room // 9)), is_ascii=False),
        "one text of nothing but escapes": chat(says('"' * (room // 2))),
        "one text of \\u escapes": chat(says("é" * (room // 6))),
        "64 long texts": chat([{"role": "user", "content": "ab\n" * (room // 64 // 4)}] * 64),
        "10,000 messages": chat([{"role": "user", "content": "x" * (room // messages - 40)}] * messages),
        f"{parts:,} parts": chat([{"role": "user", "content": [part] * (parts // 16)}] * 16),
        f"{calls:,} tool calls": chat(
            [*says("x"), *[{"role": "assistant", "content": None, "tool_calls": [call] * 500}] * (calls // 500)]
        ),
        "one tool with a large schema": chat(says("x"), tools=[_tool("f", large)]),
        "128 tools with schemas": chat(says("x"), tools=tools),
        "1,024 biases": chat(says("x"), logit_bias={str(token): 1 for token in range(1024)}),
    }


def _tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}
