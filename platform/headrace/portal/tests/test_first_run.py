"""A tenant with nothing in it: each page says what comes first, and leads there."""

from headrace.portal.tests.cast import Cast, browser
from tenants.models import Member, Role, Tenant
from tenants.tests.cast import make_project, make_tenant


def page(path: str) -> str:
    text: str = browser("alice").get(f"/t/fresh/{path}").content.decode()
    return text


def fresh(cast: Cast, role: str = Role.OWNER) -> Tenant:
    tenant = make_tenant("fresh")
    Member.objects.create(tenant=tenant, user=cast.members["alice"].user, role=role)
    return tenant


def test_a_project_comes_before_a_key(cast: Cast) -> None:
    tenant = fresh(cast)
    assert "Four steps" in page("")
    for path in ("", "keys/", "keys/new/", "playground/", "projects/"):
        assert "/t/fresh/projects/new/" in page(path), path
        assert 'href="/t/fresh/keys/new/"' not in page(path), path
    make_project(tenant, "web")
    assert "Three steps" in page("")
    assert 'href="/t/fresh/keys/new/"' in page("")
    assert '"model": "demo"' in page("")


def test_who_may_not_make_a_project_is_told_who_may(cast: Cast) -> None:
    fresh(cast, Role.DEVELOPER)
    assert "An owner or admin of your team can create one" in page("")
    assert "/projects/new/" not in page("keys/new/")


def test_it_filters_nothing_where_there_is_nothing(cast: Cast) -> None:
    fresh(cast)
    for path in ("keys/", "requests/"):
        assert 'class="filters"' not in page(path), path
    for path in ("keys/?q=x", "requests/?status=failed"):
        assert 'class="filters"' in page(path), path
        assert "Show all" in page(path), path
    assert "Nothing was asked in this period" in page("usage/")
    assert "fits the filters" in page("usage/?model=x")


def test_alerts_lead_to_a_first_budget(cast: Cast) -> None:
    fresh(cast)
    assert 'href="/t/fresh/budgets/new/"' in page("budgets/alerts/")
    assert "No budget has passed a threshold" in browser("alice").get("/t/acme/budgets/alerts/").content.decode()
