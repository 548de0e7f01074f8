"""The operation `chat`: messages to be answered.

Templates render tools and switches at the head of a prompt, then the messages in order; so does `prompt_text`. The same
messages with one more at their end give its bytes with more at their end.
"""

from typing import Any, ClassVar

import msgspec

from engines.protocols.base import PROMPT_FIELDS
from headrace.gateway.operations.messages import Content
from headrace.gateway.operations.operation import Operation

IGNORE_EOS = "ignore_eos"
# Beyond the estimate's own few: ChatML takes 5, Llama's headers and gpt-oss' channels 6 to 8 a message.
_FRAME_TOKENS = 12
# The longest text that the templates of open models begin with by themselves has some 600 tokens (Mistral Small).
_TEMPLATE_TOKENS = 2048
_HEAD = tuple(name for name in PROMPT_FIELDS if name != "messages")
_encode = msgspec.json.encode


class _Function(msgspec.Struct):
    name: str


class _Tool(msgspec.Struct):
    function: _Function


_tools = msgspec.json.Decoder(list[_Tool])


class ChatOperation(Operation, kw_only=True):
    kind: ClassVar[str] = "chat"

    content: Content

    @property
    def text_bytes(self) -> int:
        return self.content.text_bytes

    @property
    def other_tokens(self) -> int:
        return self.content.other_tokens

    @property
    def modalities(self) -> frozenset[str]:
        return self.content.modalities

    @property
    def prompt_ceiling(self) -> int:
        """The most tokens that the prompt can be: a token a byte, and more than templates add; media as estimated.

        Templates put a frame around each message, write schemas out in lines, and may begin with a text of their own.
        """
        size = self.text_bytes + 2 * self.schema_bytes + self.other_tokens
        return size + _FRAME_TOKENS * len(self.content.messages) + _TEMPLATE_TOKENS

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the tools that may be called."""
        tools = self.passed.get("tools")
        return frozenset() if tools is None else frozenset(tool.function.name for tool in _tools.decode(tools))

    def upstream_fields(self) -> dict[str, Any]:
        return {"messages": self.content.messages, **self.passed}

    def prompt_text(self) -> bytes:
        """Fields of the head as the client wrote them, and the checked messages as JSON without the outer brackets."""
        head = b"".join(b"%s=%s\n" % (name.encode(), bytes(self.passed[name])) for name in _HEAD if name in self.passed)
        return head + _encode(self.content.messages)[1:-1]

    def opening(self) -> bytes:
        """The messages up to the first of the user's: further turns leave them as they are."""
        messages = self.content.messages
        first = next((place for place, message in enumerate(messages) if message.role == "user"), len(messages))
        return _encode(messages[: first + 1])
