"""Sessions: each by its browser's name, with what it says of itself behind it; and when they are forgotten."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from headrace.portal.browsers import browser_name
from headrace.portal.forgetting import forget_sessions
from headrace.portal.tests.cast import PASSWORD, Cast

FIREFOX = "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5"
    " Mobile/15E148 Safari/604.1"
)
CURL = "curl/8.5.0"


@pytest.mark.parametrize(("said", "name"), [
    (FIREFOX, "Firefox 128 on Ubuntu"),
    (CHROME, "Chrome 130 on Windows"),
    (IPHONE, "Mobile Safari 17 on iOS"),
    (CURL, "curl 8"),
    ("", "an unknown browser"),
    ("<script>" * 1000, "an unknown browser"),
])  # fmt: skip
def test_it_names_browsers_as_people_do(said: str, name: str) -> None:
    assert browser_name(said) == name


def test_it_shows_the_name_and_keeps_what_was_said(cast: Cast) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT=f'{FIREFOX} "><b>')
    client.post("/account/login/", {"login": "alice@example.com", "password": PASSWORD})
    page = client.get("/account/sessions/").content.decode()
    assert f'title="{FIREFOX} &quot;&gt;&lt;b&gt;">Firefox 128 on Ubuntu<' in page
    assert "192.0.2.7" in page


def test_it_forgets_sessions_that_are_over_and_the_browsers_they_were_in(cast: Cast) -> None:
    for name in ("alice", "bob"):
        answer = Client().post("/account/login/", {"login": f"{name}@example.com", "password": PASSWORD})
        assert answer.status_code == 302
    now = timezone.now()
    assert forget_sessions(now=now) == 0
    count = UserSession.objects.count()
    [session, *_] = UserSession.objects.filter(user__email="alice@example.com")
    Session.objects.filter(session_key=session.session_key).update(expire_date=now - timedelta(seconds=1))
    assert forget_sessions(now=now) == 1
    assert UserSession.objects.count() == count, "it was seen just now"
    UserSession.objects.update(last_seen_at=now - timedelta(days=2))
    assert forget_sessions(now=now) == 0
    assert not UserSession.objects.filter(pk=session.pk).exists()
    assert UserSession.objects.filter(user__email="bob@example.com").exists()
