"""Pages on a second factor whose secret cannot be read any more: they say so, and let its owner make new codes."""

from collections.abc import Callable
from typing import Any

from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


class SecretLost(ValidationError):
    """The key that sealed it is no longer known. A form shows this; a template that asks for it gets nothing."""

    silent_variable_failure = True

    def __init__(self) -> None:
        super().__init__("It cannot be checked now. Please ask an operator of this installation.")


class GenerateCodes(GenerateRecoveryCodesView):  # type: ignore[misc]
    """allauth's page, also where the codes that it replaces cannot be counted."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        try:
            context: dict[str, Any] = super().get_context_data(**kwargs)
        except SecretLost:
            context = super(GenerateRecoveryCodesView, self).get_context_data(**kwargs) | {"unused_code_count": 0}
        return context


def to_new_codes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: a page that would show codes which cannot be read sends to the one that makes new ones."""

    def answer(request: HttpRequest) -> HttpResponse:
        return get_response(request)

    def process_exception(request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, SecretLost):
            return None
        messages.error(request, "Your recovery codes cannot be read any more. Generate new ones.")
        return redirect("mfa_generate_recovery_codes")

    answer.process_exception = process_exception  # type: ignore[attr-defined]
    return answer
