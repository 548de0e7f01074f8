"""The audit log as people read it: names in words, times in the tenant's zone."""

from headrace.portal.tests.cast import Cast, browser
from tenants.models import ApiKey


def test_it_writes_times_and_names_for_people(cast: Cast) -> None:
    ApiKey.objects.filter(pk=cast.acme.key.pk).update(expires_at="2027-01-31T23:30:00Z")
    page = browser("alice").get("/t/acme/audit/").content.decode()
    assert "<b>expires at</b> none → 1 Feb 2027, 00:30:00" in page
    assert "2027-01-31T" not in page


def test_it_leaves_texts_that_only_look_like_times(cast: Cast) -> None:
    for name in ("2026-11-30T99", "2026-11-30T10:00:00"):
        ApiKey.objects.filter(pk=cast.acme.key.pk).update(name=name)
        assert f"→ {name}</div>" in browser("alice").get("/t/acme/audit/").content.decode()
