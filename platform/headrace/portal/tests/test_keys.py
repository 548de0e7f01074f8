"""Keys in the portal: made and shown once, changed, rotated, revoked, found."""

import re
from datetime import timedelta

from django.utils import timezone

from headrace.portal.tests.cast import Cast, browser
from tenants import keys
from tenants.api_keys import revoke_key
from tenants.models import ApiKey, AuditEntry, RetiredSecret
from tenants.tests.cast import make_key

KEY = re.compile(r"sk-hr-[0-9A-Za-z]{61}")


def form(cast: Cast, **changes: object) -> dict[str, object]:
    return {"name": "ci", "project": cast.acme.project.pk, "priority": "batch", "concurrency": "5"} | changes


def text_in(page: str) -> str:
    found = set(KEY.findall(page))
    assert len(found) == 1
    return str(found.pop())


def test_it_makes_a_key_and_shows_it_once(cast: Cast) -> None:
    bob = browser("bob")
    answer = bob.post("/t/acme/keys/new/", form(cast, models=["demo"], expires_at="2099-07-01T12:00"))
    text = text_in(answer.content.decode())
    key = ApiKey.objects.get(name="ci")
    assert bytes(key.digest) == keys.digest(text)
    assert (key.tenant_id, key.project, key.models, key.priority) == ("acme", cast.acme.project, ["demo"], "batch")
    assert (key.concurrency, key.expires_at and key.expires_at.isoformat()) == (5, "2099-07-01T10:00:00+00:00")
    assert answer.headers["Cache-Control"] == "no-store"
    for path in ("/t/acme/keys/", f"/t/acme/keys/{key.pk}/", "/t/acme/audit/"):
        assert text not in browser("alice").get(path).content.decode()
    assert text not in str(AuditEntry.objects.values_list("before", "after"))


def test_it_makes_no_second_key_of_a_form_sent_twice(cast: Cast) -> None:
    bob = browser("bob")
    bob.post("/t/acme/keys/new/", form(cast))
    again = bob.post("/t/acme/keys/new/", form(cast))
    assert not KEY.search(again.content.decode())
    assert "errorlist" in again.content.decode()
    assert ApiKey.objects.filter(name="ci").count() == 1


def test_it_refuses_what_a_key_cannot_be(cast: Cast) -> None:
    bob = browser("bob")
    for wrong in (
        {"name": ""},
        {"project": cast.globex.project.pk},
        {"models": ["no-such"]},
        {"priority": "first"},
        {"concurrency": "0"},
        {"concurrency": "-1"},
        {"expires_at": "2001-01-01T00:00"},
        {"name": "acme-key"},
    ):
        answer = bob.post("/t/acme/keys/new/", form(cast, **wrong))
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True), wrong
    assert ApiKey.objects.filter(tenant="acme").count() == 1


def test_it_changes_a_key_but_neither_its_project_nor_what_the_ledger_writes(cast: Cast) -> None:
    key, used = cast.acme.key, timezone.now()
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=used)
    browser("bob").post(f"/t/acme/keys/{key.pk}/", form(cast, name="renamed", project=cast.globex.project.pk))
    key.refresh_from_db()
    assert (key.name, key.priority, key.concurrency) == ("renamed", "batch", 5)
    assert (key.project_id, key.last_used_at) == (cast.acme.project.pk, used)


def test_it_rotates_with_an_overlap_and_once_a_form(cast: Cast) -> None:
    key, bob = cast.acme.key, browser("bob")
    page = f"/t/acme/keys/{key.pk}/rotate/"
    sent = {"overlap": "3600", "hint": key.hint}
    text = text_in(bob.post(page, sent).content.decode())
    assert keys.parse(text) == key.pk
    assert bytes(ApiKey.objects.get(pk=key.pk).digest) == keys.digest(text)
    until = RetiredSecret.objects.get().until - timezone.now()
    assert timedelta(minutes=59) < until < timedelta(minutes=61)
    again = bob.post(page, sent, follow=True)
    assert "nothing was done" in again.content.decode()
    assert bytes(ApiKey.objects.get(pk=key.pk).digest) == keys.digest(text)


def test_it_revokes_for_good(cast: Cast) -> None:
    key, bob = cast.acme.key, browser("bob")
    assert bob.get(f"/t/acme/keys/{key.pk}/revoke/").status_code == 200
    assert not ApiKey.objects.get(pk=key.pk).is_revoked
    bob.post(f"/t/acme/keys/{key.pk}/revoke/")
    assert ApiKey.objects.get(pk=key.pk).is_revoked
    row = f'<a href="/t/acme/keys/{key.pk}/">'
    assert row not in bob.get("/t/acme/keys/").content.decode()
    assert row in bob.get("/t/acme/keys/?show=all").content.decode()
    bob.post(f"/t/acme/keys/{key.pk}/", form(cast, name="alive"))
    assert ApiKey.objects.get(pk=key.pk).name == "acme-key"


def test_it_finds_a_leaked_key_by_its_text_and_only_its_own_teams(cast: Cast) -> None:
    bob = browser("bob")
    old = text_in(bob.post("/t/acme/keys/new/", form(cast)).content.decode())
    key = ApiKey.objects.get(name="ci")
    found = bob.post("/t/acme/keys/", {"text": f" {old}\n"}).content.decode()
    assert f"/t/acme/keys/{key.pk}/" in found.partition("<form")[2] or key.pk in found
    assert "If it has leaked" in found
    assert old not in found
    new = text_in(bob.post(f"/t/acme/keys/{key.pk}/rotate/", {"overlap": "3600", "hint": key.hint}).content.decode())
    assert "If it has leaked" in bob.post("/t/acme/keys/", {"text": old}).content.decode()
    revoke_key(key=key)
    assert "revoked already" in bob.post("/t/acme/keys/", {"text": new}).content.decode()
    for text in (keys.mint().text, "sk-hr-", "x" * 250):
        assert "has this text" in bob.post("/t/acme/keys/", {"text": text}).content.decode()
    assert "has this text" in browser("carol").post("/t/globex/keys/", {"text": old}).content.decode()


def test_it_shows_fifty_keys_at_a_time(cast: Cast) -> None:
    for number in range(60):
        make_key(cast.acme.project, f"k{number:02}")
    bob = browser("bob")
    assert bob.get("/t/acme/keys/").content.decode().count("<tr") == 51
    assert bob.get("/t/acme/keys/?page=1").content.decode().count("<tr") == 12
    assert bob.get("/t/acme/keys/?q=k07").content.decode().count("<tr") == 2
    for odd in ("?page=-1", "?page=x", "?page=99999999999999999999", "?q=%00"):
        assert bob.get(f"/t/acme/keys/{odd}").status_code == 200


def test_it_says_that_a_key_was_revoked_since_the_page_was_opened(cast: Cast) -> None:
    key, bob = cast.acme.key, browser("bob")
    revoke_key(key=key)
    here = f"/t/acme/keys/{key.pk}/"
    for path, sent in (("", {"name": "late"}), ("rotate/", {"overlap": "0", "hint": key.hint}), ("revoke/", {})):
        page = bob.post(here + path, sent, follow=True).content.decode()
        assert "acme-key was revoked in the meantime: nothing was done." in page, path
    assert "What it may do" in bob.get(f"{here}rotate/", follow=True).content.decode()
    assert ApiKey.objects.get(pk=key.pk).name == "acme-key"
