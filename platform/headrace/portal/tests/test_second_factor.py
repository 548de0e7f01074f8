"""The second factor: a code is good once; one whose secret can no longer be read lets nobody in, and says so."""

import time

import pytest
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from headrace.portal.tests.cast import PASSWORD, Cast

CODE = reverse("mfa_authenticate")


@pytest.fixture
def secret(cast: Cast) -> str:
    alice = User.objects.get(email="alice@example.com")
    secret: str = generate_totp_secret()
    TOTP.activate(alice, secret)
    return secret


def code(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def half_signed_in() -> Client:
    client = Client()
    answer = client.post(reverse("account_login"), {"login": "alice@example.com", "password": PASSWORD})
    assert answer.headers["Location"].startswith(CODE)
    return client


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_code_lets_in_once(secret: str) -> None:
    first, second, said = half_signed_in(), half_signed_in(), {"code": code(secret)}
    assert first.post(CODE, said).status_code == 302
    assert is_signed_in(first)
    assert b"Incorrect code" in second.post(CODE, said).content
    assert not is_signed_in(second)


def test_a_secret_that_cannot_be_read_lets_nobody_in(
    secret: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SECRET_KEY = "another key, of thirty-two characters or more"
    settings.SECRET_KEY_FALLBACKS = []
    client = half_signed_in()
    answer = client.post(CODE, {"code": code(secret)})
    assert answer.status_code == 200
    assert b"It cannot be checked now. Please ask an operator" in answer.content
    assert not is_signed_in(client)
    assert "HEADRACE_SECRET_KEY_FALLBACKS" in caplog.text
