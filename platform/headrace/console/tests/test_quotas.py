"""Operators read in the admin's forms, and in what `apply` prints, which quota is reached."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from billing.models import Budget, WebhookEndpoint
from headrace.apply import ApplyError
from headrace.apply.tests.documents import apply
from tenants import quotas
from tenants.models import ApiKey, Member, ModelLimits, Project
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db
BUDGET = {"name": "b", "amount": "1", "period": "month", "hard": "on", "enabled": "on", "set_by": "operator"}
FORMS: list[tuple[type[Any], str, dict[str, Any]]] = [
    (Budget, "budgets", BUDGET | {"thresholds": "80"}),
    (Budget, "budgets_per_scope", BUDGET | {"thresholds": "80", "model": "demo"}),
    (ApiKey, "keys", {"name": "second", "priority": "standard"}),
    (ModelLimits, "limits", {"model": "demo", "concurrency": "3"}),
    (Project, "projects", {"slug": "second", "name": "Second", "weight": "1"}),
    (WebhookEndpoint, "webhooks", {"url": "https://203.0.114.9/", "enabled": "on"}),
    (Member, "members", {"role": "viewer"}),
]


@pytest.mark.parametrize(("made", "quota", "said"), FORMS, ids=[form[1] for form in FORMS])
def test_a_form_says_that_its_quota_is_reached(
    alice: Client, made: type[Any], quota: str, said: dict[str, Any]
) -> None:
    project = make_project(make_tenant("acme"), "web")
    make_key(project, "first")
    said = said | {"tenant": "acme", "project": project.pk if made is ApiKey else ""}
    if made is Member:
        said["user"] = User.objects.get().pk
    there = made.objects.filter(tenant="acme").count()
    quotas.set_quota(quota, there, tenant="acme")
    page = reverse(f"admin:{made._meta.app_label}_{made._meta.model_name}_add")
    answer = alice.post(page, said)
    assert answer.status_code == 200
    assert f"acme has {there} of at most {there} {quota.partition('_')[0]}" in answer.content.decode()
    assert made.objects.filter(tenant="acme").count() == there
    quotas.set_quota(quota, there + 1, tenant="acme")
    assert "errornote" not in alice.post(page, said).content.decode()  # where it asks first, nothing is made yet


DOCUMENT = """\
tenants:
  acme:
    name: Acme
    currency: EUR
    projects: {{web: {{}}}}
    {part}
"""
PARTS = [
    ("budgets", "budgets: {b: 1}", "budget acme/b"),
    ("budgets_per_scope", "budgets: {b: 1}", "budget acme/b"),
    ("projects", "", "project acme/web"),
    ("keys", "keys: [{name: k, project: web}]", "key acme/web/k"),
    ("members", "members: [{email: ann@example.com, role: owner}]", "ann@example.com"),
    ("limits", "limits: {models: {demo: {concurrency: 1}}}", "demo"),
]


@pytest.mark.parametrize(("quota", "part", "label"), PARTS, ids=[part[0] for part in PARTS])
def test_apply_names_the_entry_that_is_one_too_many(quota: str, part: str, label: str) -> None:
    apply("models: {demo: {context_window: 100}}")
    quotas.write_defaults({quota: 0})
    with pytest.raises(ApplyError) as refused:
        apply(DOCUMENT.format(part=part))
    [problem] = refused.value.problems
    assert label in problem.text
    assert f"acme has 0 of at most 0 {quota.partition('_')[0]}" in problem.text
    assert problem.line >= 2
    quotas.write_defaults({})
    apply(DOCUMENT.format(part=part))
