"""Who may do what in a tenant's portal: one table, asked by every page and by every template that shows a button."""

from dataclasses import dataclass
from enum import StrEnum

from tenants.models import Role


class May(StrEnum):
    """What a page shows or does. All that begins with `see` changes nothing."""

    SEE_USE = "see usage and requests"
    SEE_KEYS = "see keys"
    CHANGE_KEYS = "change keys"
    PLAY = "use the playground"
    SEE_BUDGETS = "see budgets"
    CHANGE_BUDGETS = "change budgets"
    SEE_WEBHOOKS = "see webhooks"
    SEE_INVOICES = "see invoices"
    SEE_PEOPLE = "see members"
    CHANGE_PEOPLE = "change members"
    CHANGE_PROJECTS = "change projects"
    SEE_SETTINGS = "see projects and settings"
    CHANGE_SETTINGS = "change settings"
    SEE_AUDIT = "see the audit log"


OPERATOR = "operator"  # the platform's staff, who look at a tenant's portal without being members
_OWNER, _ADMIN, _DEVELOPER, _FINANCE, _VIEWER = Role.OWNER, Role.ADMIN, Role.DEVELOPER, Role.FINANCE, Role.VIEWER

TABLE: dict[May, frozenset[str]] = {
    May.SEE_USE: frozenset({_OWNER, _ADMIN, _DEVELOPER, _FINANCE, _VIEWER, OPERATOR}),
    May.SEE_KEYS: frozenset({_OWNER, _ADMIN, _DEVELOPER, _VIEWER, OPERATOR}),
    May.CHANGE_KEYS: frozenset({_OWNER, _ADMIN, _DEVELOPER}),
    May.PLAY: frozenset({_OWNER, _ADMIN, _DEVELOPER}),
    May.SEE_BUDGETS: frozenset({_OWNER, _ADMIN, _DEVELOPER, _FINANCE, _VIEWER, OPERATOR}),
    May.CHANGE_BUDGETS: frozenset({_OWNER, _ADMIN, _FINANCE}),
    May.SEE_WEBHOOKS: frozenset({_OWNER, _ADMIN, _FINANCE, OPERATOR}),  # an address may be a secret itself
    May.SEE_INVOICES: frozenset({_OWNER, _ADMIN, _FINANCE, OPERATOR}),
    May.SEE_PEOPLE: frozenset({_OWNER, _ADMIN, OPERATOR}),
    May.CHANGE_PEOPLE: frozenset({_OWNER, _ADMIN}),
    May.CHANGE_PROJECTS: frozenset({_OWNER, _ADMIN}),
    May.SEE_SETTINGS: frozenset({_OWNER, _ADMIN, _DEVELOPER, _FINANCE, _VIEWER, OPERATOR}),
    May.CHANGE_SETTINGS: frozenset({_OWNER, _ADMIN}),
    May.SEE_AUDIT: frozenset({_OWNER, _ADMIN, OPERATOR}),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a page's methods ask for. A method without a rule is refused."""

    get: May | None
    post: May | None = None

    def of(self, method: str) -> May | None:
        return self.get if method in {"GET", "HEAD"} else self.post if method == "POST" else None

    @property
    def methods(self) -> list[str]:
        return [*(["GET", "HEAD"] if self.get else []), *(["POST"] if self.post else [])]


def may(role: str, what: May) -> bool:
    return role in TABLE[what]


def roles_given_by(role: str) -> list[str]:
    """The roles that a member in `role` may give, take and change. An owner is made and unmade by owners alone."""
    if role == Role.OWNER:
        return list(Role.values)
    return [each for each in Role.values if each != Role.OWNER] if may(role, May.CHANGE_PEOPLE) else []
