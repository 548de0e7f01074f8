"""Add, change and remove members: people in their role in a tenant. Who may do so, the pages say."""

from typing import TypedDict, Unpack

from django.contrib.auth.models import User

from headrace_core.writes import check_names, check_row, transactional
from tenants.models import Member, Tenant


class MemberChanges(TypedDict, total=False):
    """Pages of a team change the role alone; an operator may put right who it is, and where."""

    role: str
    user: User
    tenant: Tenant


def draft_member(*, tenant: Tenant, user: User, role: str = "") -> Member:
    """Build the row that `add_member` saves, unsaved: for plans, and for rows that are written in bulk."""
    return Member(tenant=tenant, user=user, role=role)


@transactional(Member)
def add_member(*, tenant: Tenant, user: User, role: str) -> Member:
    """Make the person a member. Raises InvalidWrite.

    The database refuses a person who is a member already, and one member too many.
    """
    member = draft_member(tenant=tenant, user=user, role=role)
    check_row(member)
    member.save(force_insert=True)
    return member


@transactional(Member)
def change_member(*, member: Member, **changes: Unpack[MemberChanges]) -> None:
    """Give the member another role. Raises InvalidWrite."""
    check_names(changes, MemberChanges.__annotations__)
    for name, value in changes.items():
        setattr(member, name, value)
    check_row(member, changes)
    member.save(update_fields=list(changes))


@transactional(Member)
def remove_member(*, member: Member) -> None:
    """Remove the person from the tenant. Keys that the person knows go on: rotate those."""
    member.delete()
