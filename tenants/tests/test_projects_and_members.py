"""Projects, members and invitations are written by verbs."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError

from headrace_core.writes import InvalidWrite, WriteError
from tenants.invitations import IsMember, NotOpen, accept_invitation, find_invitation, invite, withdraw_invitation
from tenants.members import add_member, change_member, remove_member
from tenants.models import Member, Project
from tenants.projects import add_project, change_project, remove_project
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db


def test_a_project_is_changed_and_never_renamed_in_records() -> None:
    project = add_project(tenant=make_tenant(), slug="web", name="Web", weight=Decimal(2), concurrency=5)
    change_project(project=project, name="Shop", concurrency=None)
    stored = Project.objects.get()
    assert (stored.slug, stored.name, stored.weight, stored.limits) == ("web", "Shop", Decimal(2), {})
    with pytest.raises(TypeError, match="not to be written here: slug"):
        change_project(project=project, slug="shop")  # type: ignore[call-arg]
    remove_project(project=project)
    assert not Project.objects.exists()


def test_a_project_whose_slug_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidWrite) as refused:
        add_project(tenant=make_tenant(), slug="Not A Slug", name="Web")
    assert list(refused.value.errors) == ["slug"]


def test_a_member_has_one_role_of_those_there_are() -> None:
    tenant, user = make_tenant(), User.objects.create_user("ann")
    member = add_member(tenant=tenant, user=user, role="viewer")
    change_member(member=member, role="owner")
    assert Member.objects.get().role == "owner"
    with pytest.raises(InvalidWrite):
        change_member(member=member, role="king")
    assert Member.objects.get().role == "owner"
    remove_member(member=member)
    assert not Member.objects.exists()


def test_a_person_is_a_member_once() -> None:
    tenant, user = make_tenant(), User.objects.create_user("ann")
    add_member(tenant=tenant, user=user, role="viewer")
    with pytest.raises(IntegrityError):
        add_member(tenant=tenant, user=user, role="owner")
    assert Member.objects.get().role == "viewer"


def test_an_invitation_is_accepted_once_and_not_after_it_was_withdrawn() -> None:
    tenant, ann, bob = make_tenant(), User.objects.create_user("ann"), User.objects.create_user("bob")
    invitation, token = invite(tenant=tenant, email="Ann@example.com", role="viewer", invited_by="carol")
    assert find_invitation(token) == invitation
    assert accept_invitation(invitation=invitation, user=ann).role == "viewer"
    for user, error in ((ann, IsMember), (bob, NotOpen)):
        with pytest.raises(error) as refused:
            accept_invitation(invitation=invitation, user=user)
        assert isinstance(refused.value, WriteError)
    other, _ = invite(tenant=tenant, email="bob@example.com", role="viewer", invited_by="carol")
    assert [withdraw_invitation(invitation=other), withdraw_invitation(invitation=other)] == [True, False]
    with pytest.raises(NotOpen):
        accept_invitation(invitation=other, user=bob)
