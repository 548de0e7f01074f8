"""One's own sessions: each by its browser's name, with what it says of itself behind it."""

import pytest
from django.test import Client

from headrace.portal.browsers import browser_name
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
