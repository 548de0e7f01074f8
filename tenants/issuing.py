"""Keys given out and taken back. Every process obeys within a second (the feed of configuration changes)."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from tenants import keys
from tenants.models import ApiKey, Project


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
