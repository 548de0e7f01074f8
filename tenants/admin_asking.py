"""The admin's actions that ask before they do what cannot be undone, and say what will happen."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import ModelAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.forms import BaseDialogForm

SHOWN = 20


def dialog(title: str, description: str, submit: str, form: type[BaseDialogForm] | None = None) -> dict[str, Any]:
    """What unfold's `action` asks before it runs. form: what it wants to be told."""
    return {"title": title, "description": description, "form_class": form, "form_submit_text": submit}


def question(
    page: "ModelAdmin[Any]",
    request: HttpRequest,
    rows: "QuerySet[Any]",
    *,
    action: str,
    title: str,
    effect: str,
    button: str,
    wants_reason: bool = False,
) -> TemplateResponse | None:
    """The page that asks whether `action` shall be done to `rows`; None once somebody said yes, with a reason if one
    is wanted (`reason_of`). Nothing has happened until then."""
    is_sure = request.POST.get("sure") == "yes"
    if is_sure and (reason_of(request) or not wants_reason):
        return None
    found: Iterable[Model] = list(rows)
    context = page.admin_site.each_context(request) | {
        "title": title,
        "effect": effect,
        "button": button,
        "action": action,
        "rows": found,
        "shown": SHOWN,
        "wants_reason": wants_reason,
        "lacks_reason": is_sure,
        "opts": page.opts,
    }
    return TemplateResponse(request, "admin/question.html", context)


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:200]
