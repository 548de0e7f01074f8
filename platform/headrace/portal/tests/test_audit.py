"""The audit log as people read it: names in words, times in the tenant's zone."""

from pytest_django import Settings

from headrace.portal.tests.cast import Cast, browser
from tenants.models import ApiKey, AuditEntry


def test_it_writes_times_and_names_for_people(cast: Cast) -> None:
    ApiKey.objects.filter(pk=cast.acme.key.pk).update(expires_at="2027-01-31T23:30:00Z")
    page = browser("alice").get("/t/acme/audit/").content.decode()
    assert "<b>expires at</b> none → 1 Feb 2027, 00:30:00" in page
    assert "2027-01-31T" not in page


def test_it_leaves_texts_that_only_look_like_times(cast: Cast) -> None:
    for name in ("2026-11-30T99", "2026-11-30T10:00:00"):
        ApiKey.objects.filter(pk=cast.acme.key.pk).update(name=name)
        assert f"→ {name}</div>" in browser("alice").get("/t/acme/audit/").content.decode()


def test_it_says_where_changes_behind_a_proxy_come_from(cast: Cast, settings: Settings) -> None:
    """The last to say is the proxy; what stands before is said by whoever asked."""
    said = ["198.51.100.9", "203.0.113.66, 2001:db8::9", "nonsense", ""]
    for is_behind, told in (
        (True, ["198.51.100.9", "2001:db8::9", "192.0.2.7", "192.0.2.7"]),
        (False, ["192.0.2.7"] * 4),
    ):
        settings.BEHIND_PROXY = is_behind
        origins = []
        for number, header in enumerate(said):
            new = {"name": f"k{number}{is_behind}", "slug": f"k{number}{is_behind}".lower()}
            page = browser("alice", HTTP_X_FORWARDED_FOR=header).post("/t/acme/projects/new/", new)
            assert page.status_code == 302, page.content.decode()
            origins.append(AuditEntry.objects.filter(subject__startswith="tenants_project").latest("pk").origin)
        assert origins == told
