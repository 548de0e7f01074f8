"""A prompt's leading blocks as keyed, chained hashes.

Blocks are cut from the text that decides the prompt, in bytes, so no tokenizer is needed: the first 16 are 256 bytes
(about 64 tokens), later ones grow with their depth, by a sixteenth of it. So a match is known to about 6% of its length
while a prompt of a megabyte has no more than about 110 blocks. What is beyond LONGEST bytes is not looked at.

A hash covers everything before it, the cache scope and a key of this installation: equal hashes mean equal prefixes in
one scope, and nobody without the key can test a guess of a prompt against what is shared or stored.
"""

import hashlib

import msgspec

# What an average token takes. Only how many of our blocks fit a replica's KV cache hangs on it: overlaps are counted
# as shares of a prompt, whose tokens are known better.
BYTES_PER_TOKEN = 4
FIRST_BLOCK = 256
LONGEST = 2**20
_HASH_BYTES = 8


def _bounds() -> tuple[int, ...]:
    bounds, end = [], 0
    while end < LONGEST:
        end += max(FIRST_BLOCK, end // 16 // FIRST_BLOCK * FIRST_BLOCK)
        bounds.append(min(end, LONGEST))
    return tuple(bounds)


# Where the blocks end, in bytes.
BOUNDS = _bounds()


class Chain(msgspec.Struct, frozen=True):
    """The hashes of a prompt's leading blocks, and the length of the whole text in bytes."""

    hashes: tuple[int, ...]
    length: int

    @property
    def mark(self) -> int:
        """A number that equal prompts share."""
        return self.hashes[-1] if self.hashes else 0

    def tokens(self, blocks: int, prompt_tokens: int) -> int:
        """How many of the prompt's tokens its first `blocks` blocks are."""
        return prompt_tokens * BOUNDS[blocks - 1] // self.length if blocks else 0

    def blocks(self, tokens: int, prompt_tokens: int) -> int:
        """How many whole blocks the prompt's first `tokens` tokens cover."""
        reach = self.length * tokens // max(1, prompt_tokens)
        count = 0
        while count < len(self.hashes) and BOUNDS[count] <= reach:
            count += 1
        return count


class Hasher:
    """Hashes under a key derived from `secret`; one installation's processes share it."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"hr:prefix_index").digest()

    def chain(self, text: bytes | memoryview, scope: str) -> Chain:
        """The blocks of `text` in a cache scope: the tenant's name, or "" where the cache is shared."""
        # SHA-256 begun with the key: no longer text can be made from a hash whose rest nobody sees. Where the processor
        # has instructions for it, as servers do, it is twice as fast as keyed BLAKE2.
        running = hashlib.sha256(self._key + scope.encode() + b"\0")
        hashes, start, length = [], 0, len(text)
        view = memoryview(text)
        for end in BOUNDS:
            if end > length:
                break
            running.update(view[start:end])
            hashes.append(int.from_bytes(running.digest()[:_HASH_BYTES], "big"))
            start = end
        return Chain(tuple(hashes), length)

    def conversation(self, opening: bytes, *of: str) -> bytes:
        """What tells a conversation from others: how it opens, and whose it is."""
        held = hashlib.blake2b(key=self._key, digest_size=16, person=b"hr:conversation")
        for part in (*(name.encode() for name in of), opening):
            held.update(len(part).to_bytes(8, "big") + part)
        return held.digest()
