"""Issue, change, rotate and revoke API keys. Every process obeys within a second (the configuration feed)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Unpack

from django.utils import timezone

from headrace_core.writes import Overtaken, check_names, check_row, transactional
from tenants import keys
from tenants.keys import MintedKey
from tenants.limits import LimitValues
from tenants.models import ApiKey, Project, RetiredSecret

MOST_RETIRED = 5  # every process has them in memory


class KeyTerms(LimitValues, total=False):
    """What a key may do; what is left out is the model's default, or stays. None: no limit, no end."""

    models: Sequence[str]
    priority: str
    expires_at: datetime | None


class KeyChanges(KeyTerms, total=False):
    """What may change of a key. Its project never does: records and budgets refer to it."""

    name: str


TERMS, CHANGES = frozenset(KeyTerms.__annotations__), frozenset({"name", *KeyTerms.__annotations__})


class NotRotated(Overtaken):
    """The key was revoked, or its secret is not the one it was to be rotated from: somebody was quicker."""


@dataclass(frozen=True, slots=True, repr=False)
class IssuedKey:
    """A new key. `text` is the secret: show it once, it is never to be had again."""

    key: ApiKey
    text: str


def draft_key(*, project: Project, name: str, minted: MintedKey, **terms: Unpack[KeyTerms]) -> ApiKey:
    """Build the row that `issue_key` saves, unsaved: for plans, and for rows that are written in bulk."""
    check_names(terms, TERMS)
    return ApiKey(
        public_id=minted.public_id,
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        digest=minted.digest,
        hint=minted.hint,
        **terms,
    )


@transactional(ApiKey)
def issue_key(*, project: Project, name: str, minted: MintedKey | None = None, **terms: Unpack[KeyTerms]) -> IssuedKey:
    """Issue a key of the project. minted: its secret, where it was made before (`keys.mint`, `keys.adopt`).

    Raises InvalidWrite. The database refuses a name that the project's keys have already, and one key too many.
    """
    minted = minted or keys.mint()
    key = draft_key(project=project, name=name, minted=minted, **terms)
    check_row(key)
    key.save(force_insert=True)
    return IssuedKey(key, minted.text)


@transactional(ApiKey)
def change_key(*, key: ApiKey, minted: MintedKey | None = None, **changes: Unpack[KeyChanges]) -> None:
    """Change what the key may do, and no other column: the ledger writes `last_used_at` meanwhile.

    minted: replaces the secret at once; the present one is refused from then on, unlike after `rotate_key`. The public
    id stays. Raises InvalidWrite.
    """
    check_names(changes, CHANGES)
    columns = list(changes)
    for name, value in changes.items():
        setattr(key, name, value)
    if minted is not None:
        key.digest, key.hint = minted.digest, minted.hint
        columns += ["digest", "hint"]
    check_row(key, columns)
    key.save(update_fields=columns)


@transactional(ApiKey)
def rotate_key(*, key: ApiKey, hint: str, overlap: timedelta) -> str:
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


@transactional(ApiKey)
def revoke_key(*, key: ApiKey) -> bool:
    """Refuse the key from now on, for ever. Streams already running finish. False if it was revoked before."""
    return bool(ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()))


def find_key(text: str) -> ApiKey | None:
    """The key with this text, also by a secret that it had before. Of those that the connection may see."""
    digests = keys.digests(text.strip())
    found = ApiKey.objects.filter(digest__in=digests).select_related("project").first()
    if found is None and (old := RetiredSecret.objects.filter(digest__in=digests).first()):
        found = ApiKey.objects.select_related("project").get(pk=old.key_id)
    return found
