"""Pages see one tenant's rows, whatever they forget to filter."""

import pytest
from django.contrib.auth.models import User
from django.db import connections

from headrace.portal.rows import APP, rows_of
from headrace.portal.tests.cast import Cast, browser
from tenants.models import ApiKey, AuditEntry, Member, OperatorVisit, Project, Tenant


def test_it_shows_the_named_tenant_alone_without_any_filter(cast: Cast) -> None:
    with rows_of("acme", who="alice", origin="test"):
        assert [tenant.pk for tenant in Tenant.objects.all()] == ["acme"]
        assert {key.tenant_id for key in ApiKey.objects.all()} == {"acme"}
        assert {member.tenant_id for member in Member.objects.all()} == {"acme"}
        assert User.objects.count() > len(Member.objects.all())  # people are the platform's, and on its connection
    assert {project.tenant_id for project in Project.objects.all()} > {"acme"}


@pytest.mark.parametrize("tenant", ["", "acm", "%", "acme' OR true --", "\x00"])
def test_it_shows_nothing_of_an_unknown_tenant(cast: Cast, tenant: str) -> None:
    with rows_of(tenant, who="alice", origin="test"):
        assert not ApiKey.objects.exists()


def test_it_sees_nothing_without_a_tenant(cast: Cast) -> None:
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("headrace_app",)
        for table in ("tenants_tenant", "tenants_apikey", "tenants_member", "tenants_invitation", "tenants_auditentry"):
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() == (0,), table


def test_it_attributes_what_a_page_changes(cast: Cast) -> None:
    browser("alice").post("/t/acme/projects/web/", {"name": "Storefront"})
    entry = AuditEntry.objects.filter(subject="tenants_project acme/web").first()
    assert entry is not None
    assert (entry.who, entry.origin, entry.after) == ("alice@example.com", "192.0.2.7", {"name": "Storefront"})


def test_it_notes_an_operators_visit_once_an_hour_where_the_tenant_sees_it(cast: Cast) -> None:
    opal = browser("opal")
    for path in ("/t/acme/", "/t/acme/keys/", "/t/acme/members/"):
        assert "as an operator" in opal.get(path).content.decode()
    assert OperatorVisit.objects.count() == 1
    entry = AuditEntry.objects.get(subject__startswith="tenants_operatorvisit")
    assert (entry.tenant, entry.who, entry.origin) == ("acme", "opal@example.com", "192.0.2.7")
    assert "opal@example.com" in browser("alice").get("/t/acme/audit/").content.decode()
