"""The admin asks before it does what is grave, and says what will happen: before actions, and before saving."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.contrib.admin import ModelAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.forms import BaseDialogForm

SHOWN = 20


class Change(NamedTuple):
    """What of a row changes, in people's words."""

    what: str
    before: str
    after: str


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
    if is_sure(request) and (reason_of(request) or not wants_reason):
        return None
    found = list(rows)
    said = [("action", action), *(("_selected_action", str(row.pk)) for row in found)]
    return asking(page, request, title, [effect], button, said, rows=found, wants_reason=wants_reason)


def asking(
    page: "ModelAdmin[Any]",
    request: HttpRequest,
    title: str,
    effects: Sequence[str],
    button: str,
    said: Iterable[tuple[str, str]],
    *,
    rows: Sequence[Model] = (),
    changes: Sequence[Change] = (),
    wants_reason: bool = False,
) -> TemplateResponse:
    """The page that asks. said: the form that is sent again, with the answer, to the address it was sent to."""
    context = page.admin_site.each_context(request) | {
        "title": title,
        "effects": effects,
        "button": button,
        "said": said,
        "rows": rows,
        "changes": changes,
        "seen": seen(changes),
        "shown": SHOWN,
        "wants_reason": wants_reason,
        "lacks_reason": is_sure(request),
        "back": request.path,
        "opts": page.opts,
    }
    return TemplateResponse(request, "admin/question.html", context)


def is_sure(request: HttpRequest) -> bool:
    return request.POST.get("sure") == "yes"


def is_sure_of(request: HttpRequest, changes: Sequence[Change]) -> bool:
    """Whether the yes was said to these changes: not to others, because somebody else saved in between."""
    return is_sure(request) and request.POST.get("seen") == seen(changes)


def seen(changes: Sequence[Change]) -> str:
    """A mark of what would be overwritten. What it would then be is in the form itself, or, as "at once", not known."""
    return hashlib.sha256(repr([(change.what, change.before) for change in changes]).encode()).hexdigest()[:32]


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:200]
