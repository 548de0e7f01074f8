"""API keys: given out (and shown once), changed, rotated, revoked, and found by their text."""

from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from headrace.portal.endpoint import api_base
from headrace.portal.forms.keys import FindForm, KeyForm, RotateForm
from headrace.portal.request import PortalRequest, asked
from tenants.api_keys import NotRotated, change_key, find_key, issue_key, revoke_key, rotate_key
from tenants.models import ApiKey, Project

PAGE = 50


def listing(request: PortalRequest) -> HttpResponse:
    """The keys that may still be used, or all; POST looks one up by its text, which then is in no address or log."""
    finder = FindForm(request.POST or None)
    found, searched = None, False
    if request.method == "POST" and finder.is_valid():
        searched, found = True, find_key(finder.cleaned_data["text"])
        finder = FindForm()
    rows = ApiKey.objects.of(request.tenant).select_related("project")
    shows_all, wanted = request.GET.get("show") == "all", asked(request, "q")
    if not shows_all:
        rows = rows.filter(revoked_at=None)
    if wanted:
        rows = rows.filter(name__icontains=wanted) | rows.filter(public_id=wanted)
    number = _page(request.GET.get("page", ""))
    listed = list(rows.order_by("project__slug", "name")[number * PAGE : (number + 1) * PAGE + 1])
    context = {
        "keys": listed[:PAGE],
        "now": timezone.now(),
        "shows_all": shows_all,
        "wanted": wanted,
        "earlier": number - 1 if number else None,
        "later": number + 1 if len(listed) > PAGE else None,
        "finder": finder,
        "found": found,
        "searched": searched,
        "has_projects": bool(listed) or Project.objects.of(request.tenant).exists(),
    }
    return render(request, "portal/keys.html", context)


def create(request: PortalRequest) -> HttpResponse:
    form = KeyForm(request.tenant, request.POST or None)
    if request.method == "POST" and form.is_valid():
        issued = issue_key(**form.cleaned_data)
        return _shown_once(request, issued.key, issued.text)
    context = {"form": form, "has_projects": Project.objects.of(request.tenant).exists()}
    return render(request, "portal/key_new.html", context)


def one(request: PortalRequest, key: str) -> HttpResponse:
    row = _key(request, key)
    form = KeyForm(request.tenant, request.POST or None, instance=row)
    if request.method == "POST" and row.is_revoked:
        return _too_late(request, row)
    if request.method == "POST" and form.is_valid():
        change_key(key=row, **form.changes)
        messages.success(request, f"{row.name} is saved. Every process obeys within a second.")
        return redirect("portal:keys-one", request.tenant.slug, row.pk)
    row = _key(request, key)  # as it is, not as a refused form would have it
    now = timezone.now()
    context = {"key": row, "form": form, "now": now, "retired": row.retired.filter(until__gt=now)}
    return render(request, "portal/key.html", context)


def rotate(request: PortalRequest, key: str) -> HttpResponse:
    row = _key(request, key)
    if row.is_revoked:
        return _too_late(request, row)
    form = RotateForm(request.POST or None, initial={"hint": row.hint})
    if request.method == "POST" and form.is_valid():
        try:
            text = rotate_key(key=row, hint=form.cleaned_data["hint"], overlap=form.span)
        except NotRotated:
            return _too_late(request, row)
        old_until = timezone.now() + form.span if form.span else None
        return _shown_once(request, _key(request, key), text, old_until=old_until, is_rotated=True)
    return render(request, "portal/key_rotate.html", {"key": row, "form": form})


def revoke(request: PortalRequest, key: str) -> HttpResponse:
    row = _key(request, key)
    if row.is_revoked:
        return _too_late(request, row)
    if request.method == "POST":
        if revoke_key(key=row):
            messages.success(request, f"{row.name} is revoked. Streams that already run finish.")
        return redirect("portal:keys", request.tenant.slug)
    return render(request, "portal/key_revoke.html", {"key": row})


def _too_late(request: PortalRequest, row: ApiKey) -> HttpResponse:
    """The page was opened before somebody else did something."""
    became = "revoked" if row.is_revoked else "rotated or revoked"
    messages.warning(request, f"{row.name} was {became} in the meantime: nothing was done.")
    return redirect("portal:keys-one", request.tenant.slug, row.pk)


def _key(request: PortalRequest, public_id: str) -> ApiKey:
    row = ApiKey.objects.of(request.tenant).filter(pk=public_id).select_related("project").first()
    if row is None:
        raise Http404
    return row


def _shown_once(
    request: PortalRequest, key: ApiKey, text: str, *, old_until: datetime | None = None, is_rotated: bool = False
) -> HttpResponse:
    """The one page that shows a key: the answer to the form itself, so that nothing keeps it."""
    context = {"key": key, "text": text, "old_until": old_until, "is_rotated": is_rotated, "base": api_base(request)}
    return render(request, "portal/key_shown.html", context)


def _page(text: str) -> int:
    return min(int(text), 10_000) if text.isascii() and text.isdecimal() else 0
