"""What allauth is told of us: nobody signs up alone, and what it keeps secret is sealed."""

import logging

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest

from headrace.portal.lost_secrets import SecretLost
from headrace_core import sealing

log = logging.getLogger("headrace.portal")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def encrypt(self, text: str) -> str:
        return sealing.seal(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises SecretLost, which the form that is checked shows: a lost key lets nobody in."""
        try:
            return sealing.open(encrypted_text.encode())
        except sealing.Unreadable as error:
            log.error("a second factor cannot be checked: %s", error)
            raise SecretLost from None
