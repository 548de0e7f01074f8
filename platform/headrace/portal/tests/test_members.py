"""Members: invited, given another role, removed; an owner only by owners, and nobody by himself."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from headrace.portal.tests.cast import Cast, browser
from tenants.models import Invitation, Member, Role
from tenants.tests.cast import sql


def test_it_changes_and_removes_members(cast: Cast) -> None:
    alice, bob = browser("alice"), cast.members["bob"]
    assert alice.post(f"/t/acme/members/{bob.pk}/role/", {"role": "finance"}).status_code == 302
    assert Member.objects.get(pk=bob.pk).role == Role.FINANCE
    alice.post(f"/t/acme/members/{bob.pk}/role/", {"role": "emperor"})
    assert Member.objects.get(pk=bob.pk).role == Role.FINANCE
    alice.post(f"/t/acme/members/{bob.pk}/remove/")
    assert not Member.objects.filter(pk=bob.pk).exists()
    assert browser("bob").get("/t/acme/").status_code == 404


def test_it_lets_no_admin_make_or_touch_an_owner(cast: Cast) -> None:
    ada, alice, bob = browser("ada"), cast.members["alice"], cast.members["bob"]
    assert ada.post(f"/t/acme/members/{alice.pk}/role/", {"role": "viewer"}).status_code == 403
    assert ada.post(f"/t/acme/members/{alice.pk}/remove/").status_code == 403
    ada.post(f"/t/acme/members/{bob.pk}/role/", {"role": "owner"})
    assert Member.objects.get(pk=bob.pk).role == Role.DEVELOPER
    ada.post("/t/acme/members/invite/", {"email": "n@example.com", "role": "owner"})
    assert not Invitation.objects.filter(email="n@example.com").exists()
    assert Member.objects.get(pk=alice.pk).role == Role.OWNER


@pytest.mark.parametrize("who", ["alice", "ada"])
def test_it_lets_nobody_change_himself(cast: Cast, who: str) -> None:
    """So a team keeps its last owner."""
    member = cast.members[who]
    assert browser(who).post(f"/t/acme/members/{member.pk}/role/", {"role": "viewer"}).status_code == 403
    assert browser(who).post(f"/t/acme/members/{member.pk}/remove/").status_code == 403
    assert Member.objects.get(pk=member.pk).role == member.role


@pytest.mark.parametrize("verb", ["remove", "role"])
def test_it_leaves_an_owner_where_two_owners_remove_each_other_at_once(cast: Cast, verb: str) -> None:
    alice, olga = cast.members["alice"], cast.add("olga", cast.acme.tenant, Role.OWNER)
    client = browser("alice")

    def remove() -> int:
        try:
            answer = client.post(f"/t/acme/members/{olga.pk}/{verb}/", {"role": "viewer"})
            return int(answer.status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            Member.objects.filter(pk=alice.pk).update(role=Role.VIEWER)  # by Olga, a moment earlier
            answer = threads.submit(remove)
            while not sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
                assert not answer.done()
                threading.Event().wait(0.02)
        assert answer.result(30) == 403
    assert Member.objects.get(pk=olga.pk).role == Role.OWNER


def test_it_invites_no_member_again_and_withdraws(cast: Cast) -> None:
    ada = browser("ada")
    page = ada.post("/t/acme/members/invite/", {"email": "BOB@example.com", "role": "viewer"}).content.decode()
    assert "member already" in page
    ada.post(f"/t/acme/members/invitations/{cast.acme.invitation.pk}/withdraw/")
    assert not Invitation.objects.of("acme").waiting().exists()
    assert browser().get(f"/join/{cast.acme.token}/").status_code == 404


def test_it_offers_to_invite_a_developer_before_an_owner(cast: Cast) -> None:
    page = browser("alice").get("/t/acme/members/").content.decode().partition("Invite somebody")[2]
    assert re.search(r'value="developer"\s+selected', page)
    assert not re.search(r'value="owner"\s+selected', page)
