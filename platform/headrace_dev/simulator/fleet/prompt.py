"""A toy tokenizer for simulated replicas: a token is four bytes, so a word of three letters and a space is one.

A chat is rendered as its messages one after another, each led by one token that names its role, and the role of the
answer to come. The next turn of a conversation therefore begins with the last one's prompt and answer, token by token.

How long an answer will be is said at the end of the last message, `... [[120]]` (a model knows when to stop; a
simulated one is told); without it, the answer is as long as `max_tokens`. What it says follows from its prompt alone.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from headrace_dev.simulator.prefix import contents

TOKEN = 4  # bytes
TOLD = re.compile(r"\[\[(\d{1,6})\]\]\s*$")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def told(tokens: int) -> str:
    """What to end a message with, so that its answer has `tokens` tokens. As a rule three tokens long."""
    return f"[[{tokens:06d}]] "


def said(text: str) -> int | None:
    """The length that a last message tells."""
    found = TOLD.search(text)
    return max(1, int(found[1])) if found else None


def rendered(messages: Any) -> bytes:
    """The prompt of a chat. Texts are padded to whole tokens, so that what follows is cut the same way."""
    parts = []
    roles = [str(m.get("role", "")) if isinstance(m, dict) else "" for m in messages if isinstance(messages, list)]
    for role, text in zip(roles, contents(messages), strict=True):
        data = text.encode("utf-8", "surrogatepass")
        parts.append(b"\0" + role[:3].encode().ljust(3) + data + b" " * (-len(data) % TOKEN))
    return b"".join([*parts, b"\0ass"])


@lru_cache(maxsize=4096)
def _words(seed: int) -> str:
    source = seed
    words = []
    for _ in range(64):
        source = (source * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        words.append("".join(LETTERS[source >> shift & 15] for shift in (40, 46, 52)) + " ")
    return "".join(words)


def answer(prompt: bytes, tokens: int) -> str:
    """What is said to `prompt`: `tokens` words of three letters and a space."""
    digest = int.from_bytes(blake2b(prompt, digest_size=8).digest(), "big")
    parts = [_words(digest >> shift & 1023) for shift in range(0, 54, 6)]
    text = "".join(parts[k % len(parts)] for k in range(tokens // 64 + 1))
    return text[: tokens * TOKEN]


def token_count(text: bytes) -> int:
    return -(-len(text) // TOKEN)


def chain(text: bytes, salt: str, page: int) -> list[int]:
    """The hash of each full block of `page` tokens, each covering all before it and the salt."""
    size = page * TOKEN
    held = hash(salt)
    found = []
    for start in range(0, len(text) - size + 1, size):
        held = hash((held, text[start : start + size]))
        found.append(held)
    return found


def chain_of_tokens(tokens: Sequence[int], salt: str, page: int) -> list[int]:
    """The same over real token ids."""
    held = hash(salt)
    found = []
    for start in range(0, len(tokens) - page + 1, page):
        held = hash((held, *tokens[start : start + page]))
        found.append(held)
    return found
