"""The database itself keeps tenants apart: as headrace_app, a transaction sees the tenant it names and nothing else."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import ProgrammingError, connections, transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from billing.drain import drain_all
from billing.invoicing.closing import close_all
from billing.models import BillingAccount, Budget, BudgetAdjustment, BudgetAlert, Credit, Notice, WebhookEndpoint
from billing.tests.stream import append, connect, usage_event
from headrace_dev.testing.stores import Services
from tenants.api_keys import rotate_key
from tenants.invitations import invite
from tenants.models import Member, ModelLimits, Tenant
from tenants.tests.cast import make_key, make_project, make_tenant, sql

pytestmark = pytest.mark.django_db

TABLES = {
    "tenants_tenant": "slug",
    "tenants_project": "tenant_id",
    "tenants_member": "tenant_id",
    "tenants_apikey": "tenant_id",
    "tenants_invitation": "tenant_id",
    "tenants_retiredsecret": "tenant_id",
    "tenants_modellimits": "tenant_id",
    "tenants_auditentry": "tenant",
    "billing_usagerecord": "tenant",
    "billing_usagecorrection": "tenant",
    "billing_usagehour": "tenant",
    "billing_usageday": "tenant",
    "billing_budget": "tenant_id",
    "billing_budgetadjustment": "tenant_id",
    "billing_budgetalert": "tenant_id",
    "billing_webhookendpoint": "tenant_id",
    "billing_notice": "tenant_id",
    "billing_billingaccount": "tenant_id",
    "billing_credit": "tenant_id",
    "billing_invoice": "tenant_id",
    "billing_tenantzone": "tenant",
}
CLOSED = [
    "engines_pool", "engines_replica", "engines_provider", "routing_target", "billing_deadletter", "config_change",
    "billing_legalentity", "auth_user", "django_session", "django_admin_log",
    "tenants_operatorvisit", "mfa_authenticator", "account_emailaddress", "usersessions_usersession",
]  # fmt: skip


@pytest.fixture(scope="module")
def two_tenants(services: Services, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """acme and globex with a row in every table, committed: each test's own transaction begins with them."""
    with django_db_blocker.unblock():
        make_two_tenants()
        connections.close_all()
    yield
    services.empty_tables()


@pytest.fixture(autouse=True)
def screens_role(two_tenants: None) -> Iterator[None]:
    """The connection works as headrace_app."""
    sql("SET ROLE headrace_app")
    yield
    sql("SET ROLE headrace_system")


def make_two_tenants() -> None:
    for slug in ("acme", "globex"):
        tenant = make_tenant(slug)
        key = make_key(make_project(tenant))
        rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))
        invite(tenant=tenant, email="new@example.com", role="viewer", invited_by="alice")
        Member.objects.create(tenant=tenant, user=User.objects.create(username=slug), role="owner")
        ModelLimits.objects.create(tenant=tenant, model="demo", concurrency=1)
        make_budget(tenant)
    with connect() as client:
        for slug in ("acme", "globex"):
            event = usage_event(tenant=slug)
            append(client, event, event | {"part": 1, "cost_nano": None, "cost": None})
        drain_all(client)
    for tenant in Tenant.objects.all():
        BillingAccount.objects.create(tenant=tenant, minimum_fee=1, since=tenant.created_at - timedelta(days=100))
        Credit.objects.create(tenant=tenant, amount=1, currency="EUR", reason="outage")
    close_all(now=timezone.now() + timedelta(days=40))


def make_budget(tenant: Tenant) -> None:
    """One with an adjustment, and an alert on its way."""
    budget = Budget.objects.create(tenant=tenant, name="monthly", amount=1)
    window: Any = {"tenant": tenant, "budget": budget, "window_start": timezone.now()}
    BudgetAdjustment.objects.create(nano=1, reason="r", who="w", **window)
    alert = BudgetAlert.objects.create(threshold=80, spent=1, amount=1, **window)
    endpoint = WebhookEndpoint.objects.create(tenant=tenant, url="https://hooks.test/", secret=b"sealed")
    Notice.objects.create(tenant=tenant, alert=alert, endpoint=endpoint)


def name(tenant: str) -> None:
    sql("SELECT set_config('headrace.tenant', %s, true)", tenant)


@pytest.mark.parametrize("table", TABLES)
def test_it_shows_the_named_tenants_rows_and_no_others(table: str) -> None:
    for tenant in ("acme", "globex"):
        name(tenant)
        assert {row[0] for row in sql(f"SELECT {TABLES[table]} FROM {table}")} == {tenant}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("tenant", ["", "acm", "acme ", "%", "ACME", "acme' OR true --"])
def test_it_shows_nothing_where_no_tenant_is_named(table: str, tenant: str) -> None:
    name(tenant)
    assert sql(f"SELECT * FROM {table}") == []


def test_it_shows_nothing_after_the_transaction_that_named_the_tenant() -> None:
    with transaction.atomic():
        name("acme")
        transaction.set_rollback(True)
    assert sql("SELECT * FROM tenants_tenant") == []


def test_it_writes_into_no_other_tenant() -> None:
    (theirs,) = [row[0] for row in _as_system("SELECT id FROM tenants_project WHERE tenant_id = 'globex'")]
    name("acme")
    assert sql("UPDATE tenants_project SET name = 'x' RETURNING tenant_id") == [("acme",)]
    assert sql("UPDATE tenants_project SET name = 'x' WHERE id = %s RETURNING id", theirs) == []
    assert sql("DELETE FROM tenants_apikey WHERE tenant_id = 'globex' RETURNING 1") == []
    for statement in (
        "INSERT INTO tenants_project (tenant_id, slug, name, created_at) VALUES ('globex', 'mine', 'x', now())",
        "UPDATE tenants_member SET tenant_id = 'globex'",
    ):
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            sql(statement)


@pytest.mark.parametrize("table", CLOSED)
def test_it_has_no_business_with_the_platforms_own_tables(table: str) -> None:
    name("acme")
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        sql(f"SELECT * FROM {table}")


def test_it_writes_no_record_no_audit_entry_and_no_tenant() -> None:
    name("acme")
    for statement in (
        "INSERT INTO tenants_auditentry (who, origin, tenant, action, subject) VALUES ('', '', 'acme', 'created', '')",
        "UPDATE tenants_tenant SET suspended_at = NULL",
        "UPDATE tenants_tenant SET currency = 'USD'",
        "DELETE FROM billing_usagerecord",
        "UPDATE billing_usagehour SET cost = 0",
        "UPDATE billing_usageday SET cost = 0",
        "TRUNCATE tenants_project",
    ):
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            sql(statement)


def test_it_leaves_an_audit_entry_of_its_own_writes() -> None:
    name("acme")
    sql("UPDATE tenants_project SET name = 'renamed'")
    assert sql("SELECT action, after FROM tenants_auditentry ORDER BY id DESC LIMIT 1") == [
        ("changed", '{"name": "renamed"}')
    ]


def test_it_is_never_passed_by_the_screens_role_nor_by_the_owner_of_a_view() -> None:
    assert _as_system("SELECT rolbypassrls OR rolsuper FROM pg_roles WHERE rolname = 'headrace_app'") == [(False,)]
    unguarded = _as_system(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND NOT relrowsecurity"
        " AND relnamespace = 'public'::regnamespace AND has_table_privilege('headrace_app', oid, 'SELECT')"
    )
    assert {row[0] for row in unguarded} == {"routing_model", "routing_route"}  # public names, the same for all


def _as_system(statement: str) -> list[tuple[object, ...]]:
    sql("SET ROLE headrace_system")
    rows = sql(statement)
    sql("SET ROLE headrace_app")
    return rows
