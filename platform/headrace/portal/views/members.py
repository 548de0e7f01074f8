"""Who belongs to the tenant, and who is invited to."""

import logging
from dataclasses import dataclass
from smtplib import SMTPException

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from headrace.form_errors import refusals_to
from headrace.portal.access import TABLE, roles_given_by
from headrace.portal.forms.members import InviteForm, RoleForm
from headrace.portal.letters import send_invitation
from headrace.portal.request import PortalRequest
from tenants.invitations import invite as invite_person
from tenants.invitations import withdraw_invitation
from tenants.members import change_member, remove_member
from tenants.models import Invitation, Member, Role

log = logging.getLogger("headrace.portal")


@dataclass(frozen=True, slots=True)
class Person:
    member: Member
    user: User
    form: RoleForm | None  # None: not for the visitor to change


def listing(request: PortalRequest, form: InviteForm | None = None) -> HttpResponse:
    """Members with their addresses: their own table is on the connection that people are on."""
    members = list(Member.objects.of(request.tenant).order_by("role", "pk"))
    users = User.objects.using("default").in_bulk([member.user_id for member in members])
    may_give = roles_given_by(request.role)
    people = [
        Person(
            member,
            users[member.user_id],
            RoleForm(request.role, initial={"role": member.role}, auto_id=f"role-{member.pk}-%s")
            if member.role in may_give and member.user_id != request.user.pk
            else None,
        )
        for member in members
    ]
    context = {
        "people": people,
        "invitations": list(Invitation.objects.of(request.tenant).waiting()),
        "form": form or InviteForm(request.role),
        "roles": [role.label for role in Role],
        "table": [(what.value, [role in allowed for role in Role]) for what, allowed in TABLE.items()],
    }
    return render(request, "portal/members.html", context)


def invite(request: PortalRequest) -> HttpResponse:
    """POST alone. Without a mail server, or where it fails, the link is shown to the inviter, once, to hand over."""
    form = InviteForm(request.role, request.POST)
    if not form.is_valid():
        return listing(request, form)
    email, role = form.cleaned_data["email"], form.cleaned_data["role"]
    known = list(User.objects.using("default").filter(email__iexact=email).values_list("pk", flat=True))
    if Member.objects.of(request.tenant).filter(user_id__in=known).exists():
        form.add_error("email", "This person is a member already.")
        return listing(request, form)
    inviter = request.user.get_full_name() or request.user.email or request.user.username
    with refusals_to(form):
        invitation, token = invite_person(tenant=request.tenant, email=email, role=role, invited_by=inviter)
    if form.errors:
        return listing(request, form)
    link = request.build_absolute_uri(reverse("portal:join", args=[token]))
    if settings.EMAIL_HOST and _is_sent(invitation, link):
        messages.success(request, f"{email} has been sent a link, good for seven days.")
        return redirect("portal:members", request.tenant.slug)
    context = {"invitation": invitation, "link": link, "has_mail": bool(settings.EMAIL_HOST)}
    return render(request, "portal/invited.html", context)


def _is_sent(invitation: Invitation, link: str) -> bool:
    try:
        send_invitation(invitation, link)
    except (OSError, SMTPException) as error:
        log.error("an invitation could not be mailed: %s", type(error).__name__)
        return False
    return True


def withdraw(request: PortalRequest, invitation: int) -> HttpResponse:
    row = Invitation.objects.of(request.tenant).filter(pk=invitation).first()
    if row is None:
        raise Http404
    if withdraw_invitation(invitation=row):
        messages.success(request, f"The invitation of {row.email} is withdrawn: its link is void.")
    return redirect("portal:members", request.tenant.slug)


def change(request: PortalRequest, member: int) -> HttpResponse:
    row = _changeable(request, member)
    form = RoleForm(request.role, request.POST)
    if form.is_valid():
        change_member(member=row, role=form.cleaned_data["role"])
        messages.success(request, "The role is changed.")
    return redirect("portal:members", request.tenant.slug)


def remove(request: PortalRequest, member: int) -> HttpResponse:
    row = _changeable(request, member)
    remove_member(member=row)
    messages.success(request, "The member is removed. Keys that he made go on: rotate those he knows.")
    return redirect("portal:members", request.tenant.slug)


def _changeable(request: PortalRequest, number: int) -> Member:
    """A member other than the visitor, so that a team never loses its last owner, of a role the visitor may take.

    Both are locked, as they are now: two owners who remove each other at once would leave the team without any.
    """
    both = Member.objects.of(request.tenant).filter(Q(pk=number) | Q(user_id=request.user.pk))
    rows = list(both.order_by("pk").select_for_update(of=("self",)))
    visitor = next((row for row in rows if row.user_id == request.user.pk), None)
    member = next((row for row in rows if row.pk == number), None)
    if member is None:
        raise Http404
    if visitor is None or member == visitor or member.role not in roles_given_by(visitor.role):
        raise PermissionDenied
    return member
