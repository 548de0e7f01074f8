"""A large body is read in steps, however its values are spread; others have their turns between them."""

import msgspec

from headrace.gateway.dialects.chat_completions.bounds import check_schema
from headrace.gateway.dialects.chat_completions.messages import check
from headrace.gateway.operations.messages import FunctionCall, Message, TextPart, ToolCall


def test_the_parts_and_calls_of_one_message_are_checked_in_steps() -> None:
    parts = Message(role="user", content=[TextPart(text="x") for _ in range(2000)])
    assert len(list(check([parts], []))) >= 3
    calls = [ToolCall(function=FunctionCall(name="f")) for _ in range(1000)]
    assert len(list(check([Message(role="assistant", tool_calls=calls)], []))) >= 2


def test_the_depth_of_a_schema_is_found_in_steps() -> None:
    schema = msgspec.Raw(msgspec.json.encode([{"title": 'a"b\\', "items": [{}]}] * 100))
    assert len(list(check_schema("tools", schema))) >= 2
