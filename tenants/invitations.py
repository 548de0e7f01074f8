"""Invitations: made by a member, taken once by whoever has the link, within a week.

The link's text is signed (a guess costs no look-up) and carries 256 random bits of which only a digest is stored.
"""

import secrets
from datetime import timedelta
from hashlib import sha256

from django.contrib.auth.models import User
from django.core import signing
from django.utils import timezone

from headrace_core.writes import Overtaken, WriteError, check_row, transactional
from tenants.members import add_member
from tenants.models import Invitation, Member, Role, Tenant

LIFE = timedelta(days=7)
_SALT = "headrace.invitation"


class NotOpen(Overtaken):
    """The invitation is unknown, taken, withdrawn or expired: which of these, the link's bearer is not told."""


class IsMember(WriteError):
    """The person belongs to the tenant already."""


@transactional(Invitation)
def invite(*, tenant: Tenant, email: str, role: str, invited_by: str) -> tuple[Invitation, str]:
    """Make an invitation; it and the text of its link. One that waits for the same address is withdrawn.

    Raises InvalidWrite. The database refuses one invitation too many.
    """
    waiting = Invitation.objects.of(tenant).waiting().filter(email__iexact=email)
    waiting.update(withdrawn_at=timezone.now())
    nonce = secrets.token_urlsafe(32)
    invitation = Invitation(
        tenant=tenant,
        email=email.lower(),
        role=role,
        digest=_digest(nonce),
        invited_by=invited_by,
        expires_at=timezone.now() + LIFE,
    )
    check_row(invitation)
    invitation.save(force_insert=True)
    return invitation, signing.dumps(nonce, salt=_SALT)


@transactional(Invitation)
def withdraw_invitation(*, invitation: Invitation) -> bool:
    """Void its link. False if it was taken or withdrawn before."""
    waiting = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, withdrawn_at=None)
    return bool(waiting.update(withdrawn_at=timezone.now()))


def find_invitation(token: str) -> Invitation:
    """The open invitation of a link's text; raises NotOpen."""
    try:
        nonce = signing.loads(token, salt=_SALT, max_age=LIFE)
    except signing.BadSignature:
        raise NotOpen from None
    invitation = Invitation.objects.select_related("tenant").filter(digest=_digest(nonce)).first()
    if invitation is None or not invitation.is_open(timezone.now()) or invitation.tenant.is_suspended:
        raise NotOpen
    return invitation


@transactional(Invitation)
def accept_invitation(*, invitation: Invitation, user: User) -> Member:
    """Make `user` a member, once; raises NotOpen where another was quicker, IsMember where there is nothing to gain."""
    now = timezone.now()
    waiting = Invitation.objects.filter(pk=invitation.pk, expires_at__gt=now).waiting()
    if Member.objects.of(invitation.tenant).filter(user=user).exists():
        raise IsMember
    if not waiting.update(accepted_at=now):
        raise NotOpen
    return add_member(tenant=invitation.tenant, user=user, role=Role(invitation.role))


def _digest(nonce: str) -> bytes:
    return sha256(nonce.encode()).digest()
