"""Keys given out and taken back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants import keys
from tenants.issuing import draft_key, revoke_key
from tenants.models import ApiKey
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_it_stores_a_digest_and_a_hint_and_never_the_key() -> None:
    key, text = draft_key(project=make_project(make_tenant()), name="ci", models=["demo"])
    key.save()
    stored = ApiKey.objects.get(digest=keys.digest(text))
    assert (stored.pk, stored.hint, stored.tenant_id, stored.models) == (key.public_id, text[-4:], "acme", ["demo"])
    assert text[18:61] not in str(ApiKey.objects.values().get())


def test_it_finds_whose_a_leaked_key_is() -> None:
    key, text = draft_key(project=make_project(make_tenant()), name="ci")
    key.save()
    assert ApiKey.objects.filter(digest__in=keys.digests(text)).get() == key
    assert keys.parse(text) == key.public_id


def test_it_revokes_once_and_keeps_the_first_moment() -> None:
    key = make_key(make_project(make_tenant()))
    assert revoke_key(key)
    first = ApiKey.objects.get().revoked_at
    assert not revoke_key(key)
    assert ApiKey.objects.get().revoked_at == first


def test_it_is_live_until_it_expires_or_is_revoked() -> None:
    now = timezone.now()
    key = make_key(make_project(make_tenant()), expires_at=now + timedelta(seconds=5))
    assert key.is_live(now)
    assert not key.is_live(now + timedelta(seconds=5))
    key.revoked_at = now
    assert not key.is_live(now)
