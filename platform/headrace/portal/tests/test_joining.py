"""Getting in: by invitation alone, once, as oneself."""

import re
from datetime import timedelta
from urllib.parse import unquote

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.core.mail import EmailMessage
from django.utils import timezone
from pytest_django import Settings

from headrace.portal.tests.cast import PASSWORD, Cast, browser, person
from tenants.invitations import invite, withdraw_invitation
from tenants.models import Invitation, Member, Tenant

NEW = {"name": "Nina New", "password": PASSWORD, "again": PASSWORD}


def test_it_signs_nobody_up_without_an_invitation(cast: Cast) -> None:
    page = "/account/signup/"
    assert "by invitation" in browser().get(page).content.decode()
    browser().post(page, {"email": "x@example.com", "password1": PASSWORD, "password2": PASSWORD})
    assert not User.objects.filter(email="x@example.com").exists()


def test_it_lets_somebody_new_in_once(cast: Cast) -> None:
    page, client = f"/join/{cast.acme.token}/", browser()
    assert "Acme Corporation" in client.get(page).content.decode()
    answer = client.post(page, NEW)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/t/acme/")
    assert client.get("/t/acme/").status_code == 200
    member = Member.objects.get(user__email="new@acme.example")
    assert (member.tenant_id, member.role, member.user.first_name) == ("acme", "viewer", "Nina New")
    assert browser().get(page).status_code == 404
    assert browser().post(page, NEW).status_code == 404
    assert User.objects.filter(email="new@acme.example").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [{"password": "short", "again": "short"}, {"again": "another"}, {"name": ""}, {"password": "password123456"}],
)
def test_it_wants_a_good_password_typed_twice(cast: Cast, wrong: dict[str, str]) -> None:
    answer = browser().post(f"/join/{cast.acme.token}/", NEW | wrong)
    if wrong == {"password": "password123456"}:
        wrong["again"] = "password123456"
    assert "errorlist" in answer.content.decode()
    assert not User.objects.filter(email="new@acme.example").exists()


def test_it_takes_no_link_that_is_forged_late_withdrawn_or_of_a_suspended_tenant(cast: Cast) -> None:
    tokens = [cast.initech.token, cast.acme.token[:-1] + "x", "nonsense", cast.acme.token.partition(":")[0]]
    withdraw_invitation(invitation=cast.globex.invitation)
    tokens.append(cast.globex.token)
    Invitation.objects.filter(pk=cast.acme.invitation.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    tokens.append(cast.acme.token)
    for token in tokens:
        answer = browser().post(f"/join/{token}/", NEW)
        assert answer.status_code == 404
        assert "Corporation" not in answer.content.decode()
    assert not User.objects.filter(email__startswith="new@").exists()


def test_it_voids_the_first_link_when_it_sends_a_second(cast: Cast) -> None:
    _, second = invite(tenant=cast.acme.tenant, email="New@acme.example", role="admin", invited_by="ada")
    assert browser().get(f"/join/{cast.acme.token}/").status_code == 404
    assert browser().get(f"/join/{second}/").status_code == 200


def test_it_has_a_known_person_sign_in_first(cast: Cast) -> None:
    person("nina")
    _, token = invite(tenant=cast.acme.tenant, email="nina@example.com", role="developer", invited_by="ada")
    page = f"/join/{token}/"
    assert unquote(browser().get(page).headers["Location"]) == f"/account/login/?next={page}"
    assert browser().post(page, NEW).status_code == 302
    assert browser("oscar").post(page).status_code == 403
    assert not Member.objects.filter(user__username="nina@example.com").exists()
    nina = browser("nina")
    assert "Acme Corporation" in nina.get(page).content.decode()
    assert nina.post(page).headers["Location"] == "/t/acme/"
    assert Member.objects.get(user__username="nina@example.com").role == "developer"
    assert nina.post(page).status_code == 404


def test_it_gives_no_account_away_to_who_is_invited_under_its_address(cast: Cast) -> None:
    """A person that an operator wrote into the file has no password: an invitation must not set one."""
    member = cast.members["bob"].user
    member.set_unusable_password()
    member.save()
    _, token = invite(tenant=cast.globex.tenant, email=member.email, role="viewer", invited_by="carol")
    assert browser().post(f"/join/{token}/", NEW).status_code == 302
    member.refresh_from_db()
    assert not member.has_usable_password()


def test_it_lets_nobody_keep_an_address_from_its_owner_by_claiming_it(cast: Cast) -> None:
    """A second address of an account counts once its owner has proved it."""
    EmailAddress.objects.create(user=person("mallory"), email="new@acme.example", verified=False)
    page = f"/join/{cast.acme.token}/"
    assert browser("mallory").get(page).status_code == 200
    assert browser().post(page, NEW).headers["Location"] == "/t/acme/"
    assert Member.objects.get(user__email="new@acme.example").tenant_id == "acme"
    assert not Member.objects.filter(user__username="mallory@example.com").exists()


def test_it_writes_to_nobody_who_has_no_account(cast: Cast) -> None:
    for address, letters in (("alice@example.com", 1), ("stranger@elsewhere.example", 0)):
        answer = browser().post("/account/password/reset/", {"email": address})
        assert answer.status_code == 302, "whether there is an account is not told"
        assert len(mail.outbox) == letters
        mail.outbox.clear()


def test_it_leads_home_by_how_many_teams_there_are(cast: Cast) -> None:
    assert browser().get("/").headers["Location"] == "/account/login/?next=/"
    assert browser("alice").get("/").headers["Location"] == "/t/acme/"
    assert browser("opal").get("/").headers["Location"] == "/admin/"
    assert "no team yet" in browser("oscar").get("/").content.decode()
    cast.add("xena", cast.acme.tenant, cast.members["bob"].role)  # type: ignore[arg-type]
    Member.objects.create(tenant=Tenant.objects.get(slug="globex"), user=cast.members["bob"].user, role="viewer")
    choice = browser("bob").get("/").content.decode()
    assert "/t/acme/" in choice
    assert "/t/globex/" in choice


def test_it_mails_the_link_where_there_is_a_mail_server(cast: Cast, settings: Settings) -> None:
    settings.EMAIL_HOST = "mail.example"
    page = browser("ada").post("/t/acme/members/invite/", {"email": "n@example.com", "role": "viewer"}, follow=True)
    (letter,) = mail.outbox
    assert isinstance(letter, EmailMessage)
    assert letter.to == ["n@example.com"]
    (link,) = [line for line in str(letter.body).splitlines() if line.startswith("http://testserver/join/")]
    assert link not in page.content.decode()
    mail.outbox.clear()
    answer = browser().post(link.removeprefix("http://testserver"), NEW)
    assert answer.headers["Location"] == "/t/acme/"
    assert not mail.outbox  # the link proved the address: there is nothing to confirm


def test_it_shows_the_link_to_hand_over_where_the_mail_server_fails(cast: Cast, settings: Settings) -> None:
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    page = browser("ada").post("/t/acme/members/invite/", {"email": "n@example.com", "role": "viewer"})
    assert page.status_code == 200
    assert "did not take the letter" in page.content.decode()
    (link,) = re.findall(r"http://testserver(/join/[^\s\"<]+)", page.content.decode())[:1]
    assert browser().get(link).status_code == 200
    client = browser()
    client.raise_request_exception = False
    answer = client.post("/account/password/reset/", {"email": "alice@example.com"})
    assert answer.status_code == 503
    assert "mail server does not answer" in answer.content.decode()


def test_it_shows_the_link_to_hand_over_where_there_is_no_mail_server(cast: Cast) -> None:
    page = browser("ada").post("/t/acme/members/invite/", {"email": "n@example.com", "role": "viewer"})
    assert "http://testserver/join/" in page.content.decode()
    assert not mail.outbox
