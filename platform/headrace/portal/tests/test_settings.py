"""What a tenant says of itself: its name and its time zone, and nothing that money depends on at once."""

import pytest
from django.db import transaction

from billing.ledger_check.tests.books import damage
from headrace.portal.tests.cast import Cast, browser
from tenants.models import AuditEntry, Tenant


def test_it_changes_name_and_time_zone_and_nothing_else(cast: Cast) -> None:
    sent = {"name": "Acme & Sons", "time_zone": "Asia/Kolkata", "currency": "USD", "concurrency": "999"}
    assert browser("ada").post("/t/acme/settings/", sent).status_code == 302
    acme = Tenant.objects.get(slug="acme")
    assert (acme.name, acme.time_zone, acme.currency, acme.concurrency) == ("Acme & Sons", "Asia/Kolkata", "EUR", None)
    entry = AuditEntry.objects.filter(subject="tenants_tenant acme").first()
    assert entry is not None
    assert entry.who == "ada@example.com"
    assert "Acme &amp; Sons" in browser("vic").get("/t/acme/settings/").content.decode()


def test_it_refuses_a_time_zone_that_is_none(cast: Cast) -> None:
    page = browser("ada").post("/t/acme/settings/", {"name": "Acme", "time_zone": "Europe/Atlantis"})
    assert "errorlist" in page.content.decode()
    assert Tenant.objects.get(slug="acme").time_zone == "Europe/Berlin"


@pytest.mark.parametrize("name", ["localtime", "posix/Europe/Berlin", "right/Europe/Berlin", "Factory", "posixrules"])
def test_it_refuses_a_zone_that_only_one_of_python_and_postgresql_knows(cast: Cast, name: str) -> None:
    page = browser("ada").post("/t/acme/settings/", {"name": "Acme", "time_zone": name})
    assert page.status_code == 200
    assert f"{name} is not a time zone of the IANA list" in page.content.decode()
    assert Tenant.objects.get(slug="acme").time_zone == "Europe/Berlin"


@pytest.mark.parametrize("name", ["localtime", "posix/Europe/Berlin", "Factory", "Nowhere/Atlantis"])
def test_a_zone_that_is_there_already_and_unknown_breaks_no_page(cast: Cast, name: str) -> None:
    with transaction.atomic():
        damage(f"UPDATE tenants_tenant SET time_zone = '{name}' WHERE slug = 'acme'")
    pages = ("", "usage/?by=day&period=30d", "usage/?by=hour", "requests/", "budgets/", "invoices/", "settings/")
    for page in (*pages, "budgets/refused/"):
        assert browser("ada").get(f"/t/acme/{page}").status_code == 200, page
