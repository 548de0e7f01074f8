"""Whose requests a budget counts: the one definition.

The ledger's sums say it in SQL (billing/budgets/counters.py), the last step of a rebuild in Lua (lua/rebuild.lua);
billing/budgets/tests/test_scope.py holds both to this.
"""

from typing import NamedTuple


class Scope(NamedTuple):
    """A project's slug, a key's public id and a model's name, within one tenant. In a budget's scope "" is any."""

    project: str
    key: str
    model: str

    def covers(self, request: "Scope") -> bool:
        """Return whether a budget of this scope counts a request of that one."""
        return (
            self.project in ("", request.project)
            and self.key in ("", request.key)
            and self.model in ("", request.model)
        )
