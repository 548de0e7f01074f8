"""The second factor: a code is good once; one whose secret can no longer be read lets nobody in, and says so."""

import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
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


def test_recovery_codes_that_cannot_be_read_are_replaced_by_new_ones(secret: str, settings: Settings) -> None:
    alice = User.objects.get(email="alice@example.com")
    RecoveryCodes.activate(alice)
    client = Client()
    client.force_login(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    settings.SECRET_KEY_FALLBACKS = []
    settings.SECRET_KEY = "another key, of thirty-two characters or more"
    client = half_signed_in()
    assert client.post(CODE, {"code": "12345678"}).status_code == 200
    client.force_login(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert client.get(reverse("mfa_index")).status_code == 200
    for name in ("mfa_view_recovery_codes", "mfa_download_recovery_codes"):
        page = client.get(reverse(name), follow=True)
        assert page.status_code == 200
        assert b"cannot be read any more. Generate new ones." in page.content, name
    assert client.get(reverse("mfa_deactivate_totp")).status_code == 200
    shown = client.post(reverse("mfa_generate_recovery_codes"), follow=True)
    assert shown.redirect_chain[-1][0] == reverse("mfa_view_recovery_codes")
    assert shown.status_code == 200
    assert RecoveryCodes(Authenticator.objects.get(user=alice, type="recovery_codes")).get_unused_codes()
