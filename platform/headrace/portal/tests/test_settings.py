"""What a tenant says of itself: its name and its time zone, and nothing that money depends on at once."""

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
