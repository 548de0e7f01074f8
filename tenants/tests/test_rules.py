"""What must hold is refused on validation, and by the database where validation is passed by."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from tenants.models import ApiKey, Project, Tenant
from tenants.models.limits import LIMIT_FIELDS
from tenants.tests.cast import make_key, make_project, make_tenant, sql

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "fields",
    [
        {"slug": ""}, {"slug": "Acme"}, {"slug": "-acme"}, {"slug": "acme\n"}, {"slug": "a" * 64}, {"slug": "a/b"},
        {"slug": "a:b"}, {"slug": "é"}, {"currency": "eur"}, {"currency": ""}, {"currency": "EURO"},
        {"time_zone": "Mars/Base"}, {"time_zone": ""},
        *({name: value} for name in LIMIT_FIELDS for value in (0, -1, 10**11 + 1)),
    ],
    ids=str,
)  # fmt: skip
def test_it_refuses_a_tenant_twice(fields: dict[str, Any]) -> None:
    tenant = Tenant(**{"slug": "acme", "name": "Acme"} | fields)
    with pytest.raises(ValidationError) as refused:
        tenant.full_clean()
    assert next(iter(fields)) in refused.value.message_dict
    with pytest.raises(DatabaseError), transaction.atomic():
        tenant.save(force_insert=True)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "America/Argentina/Buenos_Aires", "UTC"])
@pytest.mark.parametrize("limit", [None, 1, 10**11])
def test_it_takes_a_good_tenant(zone: str, limit: int | None) -> None:
    tenant = Tenant(slug="a.b_c-1", name="Acme", time_zone=zone, currency="JPY", concurrency=limit)
    tenant.full_clean()
    tenant.save()


def test_it_refuses_a_currency_that_does_not_exist() -> None:
    with pytest.raises(ValidationError, match="XYZ is not a currency of ISO 4217"):
        Tenant(slug="acme", name="Acme", currency="XYZ").full_clean()


def test_it_keeps_names_for_ever() -> None:
    project = make_project(make_tenant())
    make_key(project)
    make_tenant("globex")
    for statement in (
        "UPDATE tenants_tenant SET slug = 'x' WHERE slug = 'globex'",
        "UPDATE tenants_project SET slug = 'x'",
        "UPDATE tenants_project SET tenant_id = 'globex'",
        "UPDATE tenants_apikey SET public_id = 'aaaaaaaaaaaa'",
    ):
        with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
            sql(statement)


def test_it_takes_a_slug_once_per_tenant_and_a_key_name_once_per_project() -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    make_key(make_project(acme))
    make_key(make_project(globex))
    with pytest.raises(DatabaseError), transaction.atomic():
        make_project(acme)
    with pytest.raises(DatabaseError), transaction.atomic():
        make_key(Project.objects.get(tenant=acme))


@pytest.mark.django_db(transaction=True)
def test_it_refuses_a_key_in_another_tenants_project() -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    key = make_key(make_project(acme))
    key.tenant = globex
    with pytest.raises(ValidationError, match="belongs to another tenant"):
        key.full_clean()
    with pytest.raises(DatabaseError, match="tenants_apikey_own_project"):
        key.save()


@pytest.mark.parametrize(
    "fields",
    [{"priority": "urgent"}, {"digest": b"short"}, {"public_id": "short"}, {"public_id": "with-a-dash!"}],
    ids=str,
)
def test_it_refuses_a_key_that_could_not_be_found(fields: dict[str, Any]) -> None:
    make_key(make_project(make_tenant()))
    with pytest.raises(DatabaseError), transaction.atomic():
        ApiKey.objects.update(**fields)


def test_it_refuses_the_same_secret_for_two_keys() -> None:
    project = make_project(make_tenant())
    make_key(project, "a", secret="an-operators-own-secret-0001")
    with pytest.raises(DatabaseError), transaction.atomic():
        make_key(project, "b", secret="an-operators-own-secret-0001")


def test_it_keeps_what_still_has_records_from_being_deleted() -> None:
    tenant = make_tenant()
    make_key(make_project(tenant))
    with pytest.raises(DatabaseError), transaction.atomic():
        sql("SET CONSTRAINTS ALL IMMEDIATE; DELETE FROM tenants_tenant")
    assert ApiKey.objects.of(tenant).count() == 1


@pytest.mark.parametrize(
    "name",
    ["\u200b", "\u3164", "a\x00b", "two\nlines", "two\u2028lines", "\u202eevil\u202c", "\u2066x", "\x1b[31m"],
    ids=ascii,
)
def test_it_refuses_a_name_that_does_not_show(name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Tenant(slug="acme", name=name).full_clean()
    assert "name" in refused.value.message_dict


@pytest.mark.parametrize(
    "name", ["Ácme & Söhne", "می\u200cخواهم", "שלום\u200f 7", "株式会社", "👩\u200d💻", "-5", "<b>"]
)
def test_it_takes_a_name_of_any_language(name: str) -> None:
    Tenant(slug="acme", name=name).full_clean()


def test_it_refuses_a_moment_that_nobody_could_read_again() -> None:
    """The database would keep it, and whoever reads the table would then fail on it."""
    key = make_key(make_project(make_tenant()))
    key.expires_at = datetime(9999, 12, 31, 23, 59, tzinfo=ZoneInfo("America/New_York"))
    with pytest.raises(ValidationError) as refused:
        key.full_clean()
    assert "expires_at" in refused.value.message_dict
    with pytest.raises(DatabaseError), transaction.atomic():
        key.save()
