"""A toy tokenizer and a toy prefix cache, exact enough to test accounting with.

A prompt's tokens are its messages' UTF-8 bytes / 4, rounded up, and 4 for each message. Cached tokens are, as with
SGLang's radix cache, a prefix of an earlier prompt with the same salt, in pages of 16 tokens; a prompt seen before in
full is cached but for its last token.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

PAGE = 64  # bytes; 16 tokens


def contents(messages: Any) -> list[str]:
    """The text of each message; text parts are joined, other parts and malformed messages count as empty."""
    texts = []
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        texts.append(content if isinstance(content, str) else "")
    return texts


def rendered(texts: list[str]) -> bytes:
    """The prompt as one run of bytes: what the tokenizer counts and the cache matches."""
    return "\0\0\0\0".join(texts).encode("utf-8", "surrogatepass")


def count(texts: list[str]) -> int:
    sized = sum(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return max(1, -(-sized // 4) + 4 * len(texts))


class PrefixCache:
    """Least recently used pages, across all salts."""

    def __init__(self, pages: int = 65536) -> None:
        self._pages = pages
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def take(self, prompt: bytes, tokens: int, salt: str) -> int:
        """The cached tokens of a prompt of `tokens`, which is cached from now on."""
        whole = (salt, "whole", hash(prompt))
        cached = tokens - 1 if self._touch(whole) else 0
        running = hash(salt)
        matching = True
        for start in range(0, len(prompt) - PAGE + 1, PAGE):
            running = hash((running, prompt[start : start + PAGE]))
            matching = self._touch(running) and matching
            if matching:
                cached = max(cached, min((start + PAGE) // 4, tokens - 1))
        while len(self._seen) > self._pages:
            self._seen.popitem(last=False)
        return cached

    def clear(self) -> None:
        self._seen.clear()

    def _touch(self, key: Hashable) -> bool:
        known = key in self._seen
        self._seen[key] = None
        if known:
            self._seen.move_to_end(key)
        return known
