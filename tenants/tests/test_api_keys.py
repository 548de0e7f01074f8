"""Keys given out and taken back."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from headrace_core.writes import InvalidWrite
from tenants import keys
from tenants.api_keys import (
    MOST_RETIRED,
    NotRotated,
    change_key,
    find_key,
    issue_key,
    revoke_key,
    rotate_key,
)
from tenants.models import ApiKey, RetiredSecret
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_it_stores_a_digest_and_a_hint_and_never_the_key() -> None:
    issued = issue_key(project=make_project(make_tenant()), name="ci", models=["demo"])
    key, text = issued.key, issued.text
    stored = ApiKey.objects.get(digest=keys.digest(text))
    assert (stored.pk, stored.hint, stored.tenant_id, stored.models) == (key.public_id, text[-4:], "acme", ["demo"])
    assert text[18:61] not in str(ApiKey.objects.values().get())


def test_it_finds_whose_a_leaked_key_is() -> None:
    issued = issue_key(project=make_project(make_tenant()), name="ci")
    key, text = issued.key, issued.text
    assert ApiKey.objects.filter(digest__in=keys.digests(text)).get() == key
    assert keys.parse(text) == key.public_id


def test_it_revokes_once_and_keeps_the_first_moment() -> None:
    key = make_key(make_project(make_tenant()))
    assert revoke_key(key=key)
    first = ApiKey.objects.get().revoked_at
    assert not revoke_key(key=key)
    assert ApiKey.objects.get().revoked_at == first


def test_it_is_live_until_it_expires_or_is_revoked() -> None:
    now = timezone.now()
    key = make_key(make_project(make_tenant()), expires_at=now + timedelta(seconds=5))
    assert key.is_live(now)
    assert not key.is_live(now + timedelta(seconds=5))
    key.revoked_at = now
    assert not key.is_live(now)


def test_it_rotates_a_key_that_stays_itself() -> None:
    project = make_project(make_tenant())
    issued = issue_key(project=project, name="ci", concurrency=3)
    key, old = issued.key, issued.text
    new = rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))
    rotated = ApiKey.objects.get()
    assert (rotated.pk, rotated.concurrency, keys.parse(new)) == (key.pk, 3, key.pk)
    assert bytes(rotated.digest) == keys.digest(new) != keys.digest(old)
    retired = RetiredSecret.objects.get()
    assert (bytes(retired.digest), retired.hint, retired.key_id) == (keys.digest(old), old[-4:], key.pk)


def test_it_rotates_once_however_often_it_is_asked() -> None:
    key = make_key(make_project(make_tenant()))
    rotate_key(key=key, hint=key.hint, overlap=timedelta(0))
    assert not RetiredSecret.objects.exists()
    with pytest.raises(NotRotated):
        rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))
    key.refresh_from_db()
    revoke_key(key=key)
    with pytest.raises(NotRotated):
        rotate_key(key=key, hint=key.hint, overlap=timedelta(0))


def test_a_key_rotated_again_and_again_keeps_its_last_secrets() -> None:
    key = make_key(make_project(make_tenant()))
    hints = []
    for _ in range(MOST_RETIRED + 3):
        key.refresh_from_db()
        hints.append(key.hint)
        rotate_key(key=key, hint=key.hint, overlap=timedelta(days=7))
    kept = RetiredSecret.objects.order_by("pk").values_list("hint", flat=True)
    assert list(kept) == hints[-MOST_RETIRED:]


def test_it_forgets_retired_secrets_whose_time_is_over() -> None:
    key = make_key(make_project(make_tenant()))
    for _ in range(3):
        key.refresh_from_db()
        rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))
    assert RetiredSecret.objects.count() == 3
    RetiredSecret.objects.update(until=timezone.now())
    key.refresh_from_db()
    rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))
    assert RetiredSecret.objects.count() == 1


def test_a_change_writes_the_named_columns_alone() -> None:
    key, used = make_key(make_project(make_tenant()), concurrency=3), timezone.now()
    ApiKey.objects.update(last_used_at=used)
    change_key(key=key, name="nightly", concurrency=None, priority="batch")
    stored = ApiKey.objects.get()
    assert (stored.name, stored.concurrency, stored.priority, stored.last_used_at) == ("nightly", None, "batch", used)
    with pytest.raises(TypeError, match="not to be written here: project"):
        change_key(key=key, project=None)  # type: ignore[call-arg]


def test_a_chosen_secret_replaces_the_present_one_at_once() -> None:
    key = make_key(make_project(make_tenant()))
    change_key(key=key, minted=keys.adopt("an-operators-own-secret-0002"))
    assert find_key("an-operators-own-secret-0002") == key
    assert not RetiredSecret.objects.exists()


def test_an_invalid_key_is_refused_with_the_field_and_not_written() -> None:
    project = make_project(make_tenant())
    wrong: list[dict[str, Any]] = [{"name": "a\nb"}, {"concurrency": 0}, {"priority": "first"}]
    for values in wrong:
        terms: dict[str, Any] = {"name": "ci"} | values
        with pytest.raises(InvalidWrite) as refused:
            issue_key(project=project, **terms)
        assert list(refused.value.errors) == list(values)
    assert not ApiKey.objects.exists()
