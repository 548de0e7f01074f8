"""The admin asks before it does what is grave, says what will happen, and puts on record who did it and why."""

from collections.abc import Callable
from datetime import timedelta

import pytest
import redis
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from billing.budgets import counters
from billing.drain import drain_all
from billing.models import Budget, BudgetAdjustment
from billing.tests.stream import append, connect, usage_event
from tenants.api_keys import rotate_key
from tenants.models import ApiKey, AuditEntry, Tenant
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db
TENANTS, KEYS, BUDGETS = (
    reverse(f"admin:{name}_changelist") for name in ("tenants_tenant", "tenants_apikey", "billing_budget")
)


@pytest.fixture(autouse=True)
def acme() -> Tenant:
    return make_tenant("acme", currency="EUR")


def is_suspended() -> bool:
    return Tenant.objects.get(slug="acme").is_suspended


def assert_on_record() -> None:
    entry = AuditEntry.objects.all()[0]
    assert (entry.who, entry.origin, entry.subject) == ("alice-the-operator", "192.0.2.7", "tenants_tenant acme")


def test_it_suspends_tenants_once_somebody_said_yes(alice: Client) -> None:
    said = {"action": "suspend", "_selected_action": ["acme"]}
    asking = alice.post(TENANTS, said).content.decode()
    assert "All its keys are refused within a second" in asking
    assert "acme" in asking
    assert not is_suspended()
    alice.post(TENANTS, said | {"sure": "yes"})
    assert is_suspended()
    assert_on_record()
    said["action"] = "resume"
    assert "Let these tenants in again?" in alice.post(TENANTS, said).content.decode()
    assert is_suspended()
    alice.post(TENANTS, said | {"sure": "yes"})
    assert not is_suspended()


@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_it_asks_on_the_tenants_own_page(alice: Client, verb: str) -> None:
    if verb == "resume":
        alice.post(TENANTS, {"action": "suspend", "_selected_action": ["acme"], "sure": "yes"})
    page = reverse("admin:tenants_tenant_change", args=["acme"]).removesuffix("change/") + f"{verb}/"
    assert alice.get(page).status_code == 200
    assert is_suspended() == (verb == "resume")
    assert alice.post(page, {"_form_submitted": "True"}).headers["HX-Refresh"] == "true"
    assert is_suspended() == (verb == "suspend")
    assert_on_record()


def spend() -> Budget:
    budget = Budget.objects.create(tenant_id="acme", name="monthly", amount=10)
    with connect() as client:
        append(client, usage_event(tenant="acme", currency="EUR", cost="9", cost_nano=9 * 10**9))
        drain_all(client)
        counters.rebuild_all(client)
    return budget


def test_it_wants_a_reason_before_it_resets_a_budget(alice: Client) -> None:
    budget = spend()
    said = {"action": "reset", "_selected_action": [budget.pk]}
    for incomplete in ({}, {"sure": "yes"}, {"sure": "yes", "reason": "  "}):
        asking = alice.post(BUDGETS, said | incomplete).content.decode()
        assert "Reason, for the record" in asking
    assert not BudgetAdjustment.objects.exists()
    alice.post(BUDGETS, said | {"sure": "yes", "reason": "goodwill after an outage"})
    adjustment = BudgetAdjustment.objects.get()
    assert (adjustment.who, adjustment.reason) == ("alice-the-operator", "goodwill after an outage")


def test_it_lists_tenants_with_their_use_and_the_worst_of_their_budgets(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend()
    Budget.objects.create(tenant_id="acme", name="wide", amount=10**6)
    make_tenant("globex")
    page = alice.get(TENANTS).content.decode()
    assert "9.000000\u00a0EUR" in page
    assert "warned" in page
    assert "/t/acme/" in page
    with CaptureQueriesContext(connection) as few:
        alice.get(TENANTS)
    for number in range(5):
        Budget.objects.create(tenant=make_tenant(f"t{number}"), name="monthly", amount=1)
    with CaptureQueriesContext(connection) as many:
        alice.get(TENANTS)
    assert len(many) == len(few)
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    assert "rebuilding" in alice.get(TENANTS).content.decode()


@pytest.fixture
def found(alice: Client) -> Callable[[str], str]:
    def find(text: str) -> str:
        answer = alice.post(f"{KEYS}find/", {"_form_submitted": "True", "text": text})
        return answer.headers.get("HX-Redirect", "")

    return find


def test_it_finds_a_leaked_key_of_any_tenant_by_its_text(found: Callable[[str], str], alice: Client) -> None:
    key = make_key(make_project(make_tenant("globex"), "web"), "prod")
    first = rotate_key(key=key, hint=key.hint, overlap=timedelta())
    page = reverse("admin:tenants_apikey_change", args=[key.pk])
    assert found(f" {first} ") == page
    key = ApiKey.objects.get(pk=key.pk)
    assert found(rotate_key(key=key, hint=key.hint, overlap=timedelta(hours=1))) == page
    assert found(first) == page  # rotated away, but still of this key
    assert found(first[:-1] + ("a" if first[-1] != "a" else "b")) == ""
    assert found("nonsense") == ""
    shown = alice.get(page).content.decode()
    assert first not in shown


def test_it_lets_redis_be_away_when_a_budget_is_reset(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = spend()
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    with pytest.raises(redis.RedisError):
        redis.Redis.from_url(settings.REDIS_URL).ping()
    said = {"action": "reset", "_selected_action": [budget.pk], "sure": "yes", "reason": "x"}
    assert "Redis is away" in alice.post(BUDGETS, said, follow=True).content.decode()


def test_it_takes_a_yes_for_thousands_of_rows(alice: Client, acme: Tenant) -> None:
    project = make_project(acme)
    keys = [make_key(project, name) for name in ("ci", "batch", "web")]
    others = [str(number) for number in range(5000)]
    alice.post(KEYS, {"action": "revoke", "_selected_action": [*others, *(key.pk for key in keys)], "sure": "yes"})
    assert not ApiKey.objects.filter(revoked_at=None).exists()
