"""The bytes that decide a prompt, for the prefix index: equal beginnings here are equal beginnings at the engine.
And what stays of a conversation while it grows.

Templates render tools and switches at the head of a prompt, then the messages in order; so does this. The same messages
with one more at their end give these bytes with more at their end.
"""

import msgspec

from engines.protocols.base import PROMPT_FIELDS
from headrace.gateway.dialects.chat_completions.request import ChatRequest

_encode = msgspec.json.encode
_HEAD = tuple(name for name in PROMPT_FIELDS if name != "messages")


def prompt_text(chat: ChatRequest) -> memoryview:
    """Fields of the head as the client wrote them, and the checked messages as JSON without the outer brackets."""
    head = b"".join(b"%s=%s\n" % (name.encode(), bytes(chat.passed[name])) for name in _HEAD if name in chat.passed)
    messages = memoryview(_encode(chat.content.messages))[1:-1]  # megabytes, perhaps: not copied
    return memoryview(b"".join([head, messages])) if head else messages


def opening(chat: ChatRequest) -> bytes:
    """The messages up to the first of the user's: further turns leave them as they are."""
    messages = chat.content.messages
    first = next((place for place, message in enumerate(messages) if message.role == "user"), len(messages))
    return _encode(messages[: first + 1])
