"""Whoever has as many as a quota allows reads so in the form, and keeps what was typed."""

import threading
import time
from typing import Any

import pytest
from django.db import connection, connections, transaction

from billing.models import Budget, WebhookEndpoint
from headrace.portal.tests.cast import PASSWORD, Cast, browser
from tenants import quotas
from tenants.invitations import invite
from tenants.models import ApiKey, Invitation, Member, ModelLimits, Project
from tenants.tests.cast import make_project

NEW_BUDGET = {"name": "research", "period": "month", "amount": "250", "hard": "hard", "project": "", "model": ""}
JOINING = {"name": "Nina New", "password": PASSWORD, "again": PASSWORD}
# What is made, the quota, whose form it is, its address, and what is sent.
FORMS: list[tuple[type[Any], str, str, str, dict[str, Any]]] = [
    (Budget, "budgets", "fay", "budgets/new/", NEW_BUDGET),
    (Budget, "budgets_per_scope", "alice", "budgets/new/", NEW_BUDGET | {"key": "acme-key"}),
    (ApiKey, "keys", "alice", "keys/new/", {"name": "second", "project": "web", "priority": "standard"}),
    (ModelLimits, "limits", "alice", "budgets/limits/new/", {"project": "web", "model": "demo", "concurrency": "3"}),
    (Project, "projects", "ada", "projects/new/", {"name": "Second", "slug": "second"}),
    (WebhookEndpoint, "webhooks", "alice", "budgets/webhooks/new/", {"url": "https://203.0.114.9/"}),
    (Invitation, "invitations", "alice", "members/invite/", {"email": "nina@example.com", "role": "viewer"}),
]


@pytest.mark.parametrize(("made", "quota", "who", "page", "said"), FORMS, ids=[form[1] for form in FORMS])
def test_a_form_says_that_its_quota_is_reached(
    cast: Cast, made: type[Any], quota: str, who: str, page: str, said: dict[str, Any]
) -> None:
    if "project" in said and made is ApiKey:
        said = said | {"project": cast.acme.project.pk}
    there = made.objects.filter(tenant="acme").count()
    quotas.set_quota(quota, there, tenant="acme")
    answer = browser(who).post(f"/t/acme/{page}", said)
    text = answer.content.decode()
    assert (answer.status_code, made.objects.filter(tenant="acme").count()) == (200, there)
    assert f"acme has {there} of at most {there} {quota.partition('_')[0]}" in text
    assert "have an operator raise the quota." in text
    assert 'class="errorlist nonfield"' in text
    quotas.set_quota(quota, there + 1, tenant="acme")
    assert browser(who).post(f"/t/acme/{page}", said).status_code in {200, 302}
    assert made.objects.filter(tenant="acme").count() == there + 1


def test_what_is_there_can_be_changed_however_low_the_quota(cast: Cast) -> None:
    quotas.set_quota("projects", 0, tenant="acme")
    answer = browser("ada").post("/t/acme/projects/web/", {"name": "Renamed"})
    assert (answer.status_code, Project.objects.get(slug="web", tenant="acme").name) == (302, "Renamed")


def test_a_revoked_key_makes_room(cast: Cast) -> None:
    quotas.set_quota("keys", 1, tenant="acme")
    page = f"/t/acme/keys/{cast.acme.key.pk}/revoke/"
    assert browser("alice").post(page).status_code == 302
    sent = {"name": "second", "project": cast.acme.project.pk, "priority": "standard"}
    assert "sk-hr-" in browser("alice").post("/t/acme/keys/new/", sent).content.decode()


def test_an_invitation_may_be_sent_again_at_the_quota(cast: Cast) -> None:
    quotas.set_quota("invitations", 1, tenant="acme")
    sent = {"email": cast.acme.invitation.email, "role": "developer"}
    assert browser("alice").post("/t/acme/members/invite/", sent).status_code in {200, 302}
    assert Invitation.objects.of("acme").waiting().get().role == "developer"


def test_whoever_joins_a_full_team_reads_so(cast: Cast) -> None:
    there = Member.objects.of("acme").count()
    quotas.set_quota("members", there, tenant="acme")
    _, token = invite(tenant=cast.acme.tenant, email="carol@example.com", role="viewer", invited_by="ada")
    for client, sent, link in ((browser(), JOINING, cast.acme.token), (browser("carol"), {}, token)):
        answer = client.post(f"/join/{link}/", sent)
        assert answer.status_code == 200
        assert f"acme has {there} of at most {there} members" in answer.content.decode()
    assert Member.objects.of("acme").count() == there
    assert Invitation.objects.of("acme").waiting().count() == 2
    quotas.set_quota("members", there + 1, tenant="acme")
    assert browser().post(f"/join/{cast.acme.token}/", JOINING).status_code == 302


def test_the_playground_says_so_too(cast: Cast) -> None:
    quotas.set_quota("keys", 1, tenant="acme")
    answer = browser("bob").post("/t/acme/playground/key/", {"project": "web"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (409, "application/json")
    assert answer.json()["error"].startswith("acme has 1 of at most 1 keys.")


def test_the_slower_of_two_at_once_reads_so(cast: Cast) -> None:
    """Both forms are valid; the database takes one."""
    quotas.set_quota("projects", 2, tenant="acme")
    ada, answers = browser("ada"), []

    def send() -> None:
        answers.append(ada.post("/t/acme/projects/new/", {"name": "Second", "slug": "second"}))
        connections.close_all()

    sending = threading.Thread(target=send)
    with transaction.atomic():
        make_project(cast.acme.tenant, "first")
        sending.start()
        deadline = time.monotonic() + 20
        while not is_somebody_waiting():
            assert time.monotonic() < deadline
    sending.join()
    [answer] = answers
    assert answer.status_code == 403
    assert "acme has 2 of at most 2 projects" in answer.content.decode()


def is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])
