"""Every change leaves who, what, before and after; no secret; and nobody rewrites it."""

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from engines.models import Pool, Provider
from headrace_core import audit, sealing
from tenants.api_keys import revoke_key
from tenants.models import AuditEntry
from tenants.tenants import resume_tenant, suspend_tenant
from tenants.tests.cast import make_key, make_project, make_tenant, sql

pytestmark = pytest.mark.django_db


def entries(subject: str) -> list[tuple[str, object, object]]:
    found = AuditEntry.objects.filter(subject__startswith=subject).order_by("id")
    return list(found.values_list("action", "before", "after"))


def test_it_names_who_acts_and_from_where() -> None:
    with audit.acting(who="alice", origin="192.0.2.7"):
        tenant = make_tenant()
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.origin, entry.tenant, entry.action) == ("alice", "192.0.2.7", "acme", "created")
    assert entry.subject == "tenants_tenant acme"
    assert (entry.after or {})["name"] == tenant.name


def test_it_attributes_to_the_login_what_names_nobody() -> None:
    make_tenant()
    assert AuditEntry.objects.get().origin == "database"
    assert AuditEntry.objects.get().who != ""


def test_it_takes_any_text_for_a_name() -> None:
    with audit.acting(who="a\x00'; DROP TABLE x --" + "é" * 500, origin="\x00"):
        make_tenant()
    assert AuditEntry.objects.get().who.startswith("a'; DROP TABLE x --é")


def test_it_keeps_only_what_changed() -> None:
    tenant = make_tenant()
    assert (suspend_tenant(tenant=tenant), suspend_tenant(tenant=tenant)) == (True, False)
    assert (resume_tenant(tenant=tenant), resume_tenant(tenant=tenant)) == (True, False)
    tenant.save()
    changed = entries("tenants_tenant")[1:]
    assert [(action, list(before), list(after)) for action, before, after in changed] == [  # type: ignore[call-overload]
        ("changed", ["suspended_at"], ["suspended_at"])
    ] * 2


def test_it_shows_that_a_secret_changed_and_not_what_it_is() -> None:
    provider = Provider.objects.create(name="hosted", base_url="https://x.test", api_key=sealing.seal("first"))
    provider.api_key = sealing.seal("second")
    provider.save()
    provider.api_key = None
    provider.save()
    pool = Pool.objects.create(name="p", model="m", admin_key=sealing.seal("third"))
    pool.delete()
    created, changed, cleared = entries("engines_provider")
    assert created[2]["api_key"] == "set"  # type: ignore[index]
    assert changed == ("changed", {"api_key": "set"}, {"api_key": "changed"})
    assert cleared == ("changed", {"api_key": "set"}, {"api_key": None})
    assert entries("engines_pool")[1][1]["admin_key"] == "set"  # type: ignore[index]


def test_it_covers_keys_members_and_users_without_their_secrets() -> None:
    key = make_key(make_project(make_tenant()))
    revoke_key(key=key)
    user = User.objects.create_user("alice", "alice@acme.test", "a long password")
    user.set_password("another password")
    user.save()
    assert entries("tenants_apikey")[0][2]["digest"] == "set"  # type: ignore[index]
    assert list(entries("tenants_apikey")[1][2]) == ["revoked_at"]  # type: ignore[call-overload]
    assert entries("auth_user")[-1] == ("changed", {"password": "set"}, {"password": "changed"})
    everything = str(list(AuditEntry.objects.values()))
    assert bytes(key.digest).hex() not in everything
    assert "pbkdf2" not in everything


def test_it_is_silent_about_last_use_and_last_login() -> None:
    key = make_key(make_project(make_tenant()))
    user = User.objects.create_user("alice")
    before = AuditEntry.objects.count()
    sql("UPDATE tenants_apikey SET last_used_at = now() WHERE public_id = %s", key.public_id)
    user.last_login = key.created_at
    user.save(update_fields=["last_login"])
    assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("role", ["headrace_system", "headrace_owner"])
@pytest.mark.parametrize(
    "statement", ["UPDATE tenants_auditentry SET who = 'nobody'", "DELETE FROM tenants_auditentry"]
)
def test_it_lets_nobody_rewrite_the_trail(role: str, statement: str) -> None:
    make_tenant()
    sql(f"SET ROLE {role}")
    with pytest.raises(DatabaseError), transaction.atomic():
        sql(statement)
    sql("SET ROLE headrace_system")
