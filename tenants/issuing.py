"""Keys given out and taken back. Every process obeys within a second (the feed of configuration changes)."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from tenants import keys
from tenants.models import ApiKey, Project, RetiredSecret

MOST_RETIRED = 5  # every process has them in memory


class NotRotated(Exception):
    """The key was revoked, or its secret is not the one it was to be rotated from: somebody was quicker."""


def draft_key(*, project: Project, name: str, secret: str | None = None, **fields: Any) -> tuple[ApiKey, str]:
    """An unsaved key and its text, which is never to be had again. Without `secret` it is minted.

    `fields` are further columns of ApiKey. Raises ValidationError for a `secret` that cannot be used.
    """
    minted = keys.mint() if secret is None else keys.adopt(secret)
    key = ApiKey(
        public_id=minted.public_id,
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        digest=minted.digest,
        hint=minted.hint,
        **fields,
    )
    return key, minted.text


@transaction.atomic
def revoke_key(key: ApiKey) -> bool:
    """Refuse the key from now on, for ever. Streams already running finish. False if it was revoked before."""
    return bool(ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()))


@transaction.atomic
def rotate_key(key: ApiKey, *, hint: str, overlap: timedelta) -> str:
    """Give the key a new secret and return its text; the one ending in `hint` opens the door for `overlap` more.

    The key stays the same: its id, limits, budgets and records. Of the secrets it had before, the last MOST_RETIRED
    work. Raises NotRotated where its secret no longer ends in `hint`: a repeated request therefore rotates once.
    """
    minted, now = keys.mint(key.public_id), timezone.now()
    row = ApiKey.objects.select_for_update().get(pk=key.pk)
    if row.is_revoked or row.hint != hint:
        raise NotRotated
    ApiKey.objects.filter(pk=row.pk).update(digest=minted.digest, hint=minted.hint)
    RetiredSecret.objects.filter(key=row, until__lte=now).delete()
    if overlap:
        RetiredSecret.objects.create(
            tenant_id=row.tenant_id, key=row, digest=row.digest, hint=row.hint, until=now + overlap
        )
        newest = row.retired.order_by("-pk").values_list("pk", flat=True)[:MOST_RETIRED]
        row.retired.exclude(pk__in=list(newest)).delete()
    return minted.text


def find_key(text: str) -> ApiKey | None:
    """The key with this text, also by a secret that it had before. Of those that the connection may see."""
    digests = keys.digests(text.strip())
    found = ApiKey.objects.filter(digest__in=digests).select_related("project").first()
    if found is None and (old := RetiredSecret.objects.filter(digest__in=digests).first()):
        found = ApiKey.objects.select_related("project").get(pk=old.key_id)
    return found
