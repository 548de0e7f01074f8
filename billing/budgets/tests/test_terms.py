"""Budgets and webhooks are written by verbs."""

from decimal import Decimal

import pytest

from billing.budgets.terms import add_budget, change_budget, remove_budget
from billing.budgets.webhooks import add_webhook, change_webhook, remove_webhook, send_test
from billing.models import Budget, Notice, WebhookEndpoint
from headrace_core import sealing
from headrace_core.writes import InvalidWrite
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_a_budget_counts_what_it_was_added_for() -> None:
    key = make_key(make_project(make_tenant()))
    budget = add_budget(tenant="acme", name="nightly", key=key.pk, amount=Decimal(5), thresholds=[100, 50, 100])
    change_budget(budget=budget, amount=Decimal(7), hard=False)
    stored = Budget.objects.get()
    assert (stored.key, stored.period, stored.amount, stored.hard) == (key.pk, "month", Decimal(7), False)
    assert stored.thresholds == [50, 100]
    with pytest.raises(TypeError, match="not to be written here: key"):
        change_budget(budget=budget, key="")  # type: ignore[call-arg]
    remove_budget(budget=budget)
    assert not Budget.objects.exists()


def test_a_budget_of_another_tenants_key_or_project_is_refused() -> None:
    key = make_key(make_project(make_tenant("globex"), "batch"))
    make_tenant("acme")
    with pytest.raises(InvalidWrite) as refused:
        add_budget(tenant="acme", name="b", amount=Decimal(5), key=key.pk, project="batch")
    assert refused.value.errors == {
        "project": ["The tenant has no such project."],
        "key": ["The tenant has no such key."],
    }


def test_an_increase_without_an_end_is_refused() -> None:
    make_tenant()
    budget = add_budget(tenant="acme", name="b", amount=Decimal(5))
    with pytest.raises(InvalidWrite, match="An increase wants an amount and an end"):
        change_budget(budget=budget, extra=Decimal(1))
    assert Budget.objects.get().extra is None


def test_a_webhooks_secret_is_stored_sealed() -> None:
    make_tenant()
    added = add_webhook(tenant="acme", url="https://hooks.test/", enabled=False)
    stored = WebhookEndpoint.objects.get()
    assert (stored.url, stored.enabled, sealing.open(stored.secret)) == ("https://hooks.test/", False, added.secret)
    assert added.secret.encode() not in bytes(stored.secret)
    assert added.secret not in repr(added)


def test_a_webhook_never_leads_inside() -> None:
    make_tenant()
    webhook = add_webhook(tenant="acme", url="https://hooks.test/").webhook
    for url in ("https://127.0.0.1/", "http://hooks.test/", "https://localhost/"):
        with pytest.raises(InvalidWrite):
            add_webhook(tenant="acme", url=url)
        with pytest.raises(InvalidWrite):
            change_webhook(webhook=webhook, url=url)
    assert [each.url for each in WebhookEndpoint.objects.all()] == ["https://hooks.test/"]


def test_one_test_of_a_webhook_waits_at_a_time() -> None:
    make_tenant()
    webhook = add_webhook(tenant="acme", url="https://hooks.test/").webhook
    assert [send_test(webhook=webhook), send_test(webhook=webhook)] == [True, False]
    assert Notice.objects.count() == 1
    remove_webhook(webhook=webhook)
    assert not Notice.objects.exists()
