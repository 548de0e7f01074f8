"""What each replica's prefix cache holds, as far as our own requests tell: no engine is asked, no token is counted.

`Hasher.chain` turns the text that decides a prompt into keyed hashes of its leading blocks; `PrefixIndex` remembers
which replica was sent which, within the size of its cache, and is corrected by the `cached_tokens` that engines report.
A wrong entry costs a cache hit, nothing else.
"""

from routing.prefix_index.blocks import BYTES_PER_TOKEN, Chain, Hasher
from routing.prefix_index.index import Change, PrefixIndex, Sent

__all__ = ["BYTES_PER_TOKEN", "Chain", "Change", "Hasher", "PrefixIndex", "Sent"]
