"""The tokens that replicas hold for running requests: prompts to prefill, outputs to decode."""

from collections import Counter


class HeldTokens:
    """What this process's own requests hold of each replica."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()

    def tokens(self, replica: str) -> int | None:
        return max(0, self._own[replica])

    def enter(self, replica: str, tokens: int) -> None:
        """A request that adds so much goes to this replica."""
        self._own[replica] += tokens

    def leave(self, replica: str, tokens: int) -> None:
        """It ended, however."""
        self._own[replica] -= tokens
        if self._own[replica] <= 0:
            del self._own[replica]
