"""Pages that say no, or that something is away, in the portal's own look."""

import time

from django.conf import settings
from django.test import Client
from django.test.utils import override_settings

from headrace.portal.headers import PORTAL_POLICY
from headrace.portal.tests.cast import PASSWORD, Cast, browser


def test_it_says_that_a_form_is_of_too_old_a_page(shared: Cast) -> None:
    answer = browser("alice", enforce_csrf_checks=True).post("/t/acme/projects/new/", {"name": "x", "slug": "x"})
    assert answer.status_code == 403
    assert "Too old a page" in answer.content.decode()
    assert answer.headers["Content-Security-Policy"] == PORTAL_POLICY


def test_it_says_that_something_was_tried_too_often(shared: Cast) -> None:
    client = Client(REMOTE_ADDR="192.0.2.99")
    for number in range(40):
        answer = client.post("/account/login/", {"login": f"nobody-{number}", "password": "wrong wrong wrong"})
        if answer.status_code == 429:
            break
    assert answer.status_code == 429
    assert "Too often" in answer.content.decode()
    assert "base.css" in answer.content.decode()


def test_it_says_that_redis_is_away_when_somebody_signs_in(shared: Cast) -> None:
    away = {"default": settings.CACHES["default"] | {"LOCATION": "redis://127.0.0.1:1/0"}}
    client, began = Client(raise_request_exception=False), time.monotonic()
    with override_settings(CACHES=away):
        answer = client.post("/account/login/", {"login": "alice@example.com", "password": PASSWORD})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "Redis does not answer" in answer.content.decode()
    assert time.monotonic() - began < 10
