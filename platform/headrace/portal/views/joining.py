"""Taking an invitation: by somebody new, who chooses a password, or by somebody who is known here and logs in first."""

from allauth.account.models import EmailAddress
from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from headrace.form_errors import refusals_to
from headrace.portal.forms.joining import NewPasswordForm
from headrace_core import audit
from tenants.invitations import IsMember, NotOpen, accept_invitation, find_invitation
from tenants.models import Invitation


def join(request: HttpRequest, token: str) -> HttpResponse:
    try:
        invitation = find_invitation(token)
        known = _known(invitation.email)
        if known is None:
            return _join_new(request, invitation)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if request.user.pk != known.pk:
            return render(request, "portal/join_other.html", {"invitation": invitation}, status=403)
        if request.method == "POST":
            return _accept(request, invitation, known)
        return render(request, "portal/join.html", {"invitation": invitation})
    except NotOpen:
        return render(request, "portal/join_closed.html", status=404)


def _known(email: str) -> User | None:
    """Who has this address. An unproven second address of somebody else's is no claim to it."""
    return (
        User.objects.filter(email__iexact=email).first()
        or User.objects.filter(username__iexact=email).first()
        or User.objects.filter(emailaddress__email__iexact=email, emailaddress__verified=True).first()
    )


def _join_new(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    user = User(username=invitation.email[:150], email=invitation.email)
    form = NewPasswordForm(user, request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "portal/join_new.html", {"invitation": invitation, "form": form})
    user.first_name = form.cleaned_data["name"]
    user.set_password(form.cleaned_data["password"])
    with refusals_to(form), audit.acting(who=user.username, origin=audit.origin_of(request)):
        user.save(force_insert=True)
        # A link that came by mail proves the address. Without a mail server the inviter handed it over himself.
        EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=bool(settings.EMAIL_HOST))
        accept_invitation(invitation=invitation, user=user)
    if form.errors:
        return render(request, "portal/join_new.html", {"invitation": invitation, "form": form})
    welcome = reverse("portal:overview", args=[invitation.tenant_id])
    response: HttpResponse = perform_login(request, user, redirect_url=welcome)
    return response


def _accept(request: HttpRequest, invitation: Invitation, user: User) -> HttpResponse:
    form = Form(request.POST)  # only its button
    try:
        with refusals_to(form), audit.acting(who=user.username, origin=audit.origin_of(request)):
            accept_invitation(invitation=invitation, user=user)
    except IsMember:
        messages.info(request, "You belong to this team already.")
    if form.errors:
        return render(request, "portal/join.html", {"invitation": invitation, "form": form})
    return redirect("portal:overview", invitation.tenant_id)
