"""The settlement page: what it says of each part while all is well, and what to do where it is not."""

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from billing.budgets import counters
from billing.drain import drain_all
from billing.invoicing import overdue
from billing.invoicing.tests.making import make_customer, make_price, make_seller, use
from billing.models import BillingAccount, Budget, DeadLetter, LedgerCheckRun, TenantZone
from billing.tasks import drain_usage, make_invoices
from billing.tests.stream import append, usage_event
from headrace.celery import app
from headrace.console.overview import today
from headrace.console.settlement.section import BAD, GOOD, QUIET, TIGHT, Section
from headrace.console.settlement.sections import sections
from headrace.worker import signs_of_life
from tenants.meters.holds import HOLDS, USAGE
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def valkey() -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        yield client


def found(title: str) -> Section:
    shown, problem = sections()
    assert problem == ""
    return next(section for section in shown if section.title == title)


def hold(client: "redis.Redis", tenant: str, *, age: float, lease: float) -> None:
    """A hold of a request that began `age` seconds ago and whose lease ends in `lease`."""
    now_ms = int(time.time() * 1000)
    request_id = str(uuid.UUID(int=int(now_ms - age * 1000) << 80 | 7 << 76 | 2 << 62 | uuid.uuid4().int % 2**60))
    client.zadd(HOLDS, {request_id: now_ms + lease * 1000})
    client.hset(f"hr:hold:{request_id}", mapping={"record": json.dumps({"tenant": tenant}), "meters": "[]"})


def test_it_says_that_all_is_well_where_nothing_waits(client: Client, valkey: "redis.Redis") -> None:
    client.force_login(User.objects.create_superuser("olga"))
    for name in settings.CELERY_BEAT_SCHEDULE.values():
        signs_of_life.note(valkey, name["task"])
    page = client.get("/admin/settlement/").content.decode()
    for words in ("Everything that ended is in the ledger", "No request runs", "not compared yet", "none"):
        assert words in page
    verdicts = {section.title: section.verdict for section in sections()[0]}
    assert verdicts.pop("Books") == verdicts.pop("Invoices") == QUIET
    assert set(verdicts.values()) == {GOOD}, verdicts


def test_it_tells_how_far_the_ledger_is_behind(valkey: "redis.Redis") -> None:
    append(valkey, usage_event())
    assert (found("Usage on its way to the ledger").verdict, valkey.xlen(USAGE)) == (GOOD, 1)
    drain_all(valkey)
    valkey.delete(USAGE)
    valkey.xadd(USAGE, {"e": "{}"}, id=f"{int((time.time() - 600) * 1000)}-0")
    late = found("Usage on its way to the ledger")
    assert (late.verdict, late.figure) == (BAD, "1 waiting")
    assert "10 min" in late.detail
    assert "worker" in late.todo


def test_it_leads_from_dead_letters_to_their_replay(client: Client, valkey: "redis.Redis") -> None:
    append(valkey, b"bad")
    drain_all(valkey)
    letters = found("Dead letters")
    assert (letters.verdict, letters.figure) == (BAD, "1 waiting")
    assert letters.rows[0][1] == DeadLetter.objects.get().reason
    assert letters.link is not None
    client.force_login(User.objects.create_superuser("olga"))
    listed = client.get(letters.link[1]).content.decode()
    assert "Replay: give the selected events to the ledger again" in listed
    DeadLetter.objects.update(replayed_at=timezone.now())
    assert (found("Dead letters").verdict, found("Dead letters").link) == (GOOD, None)


def test_it_knows_when_each_task_of_the_worker_last_ran(valkey: "redis.Redis") -> None:
    assert (found("Workers").verdict, found("Workers").figure) == (BAD, "not running")
    assert issubclass(app.Task, signs_of_life.SignedTask)
    drain_usage.apply()
    [drain] = [sign for sign in signs_of_life.read(valkey) if sign.name == "drain"]
    assert drain.at is not None
    assert abs(drain.at / 1000 - time.time()) < 60
    assert found("Workers").figure.startswith("late: keep-budgets, reap")
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        signs_of_life.note(valkey, entry["task"])
    assert found("Workers").verdict == GOOD
    valkey.hset(signs_of_life.RAN, "billing.invoices", f"{int((time.time() - 4 * 3600) * 1000)} here")
    assert (found("Workers").verdict, found("Workers").figure) == (TIGHT, "late: invoices")


def test_it_counts_holds_by_tenant_and_those_that_outlived_their_lease(valkey: "redis.Redis") -> None:
    for tenant, age, lease in (("acme", 5, 20), ("acme", 400, 20), ("globex", 50, -3)):
        hold(valkey, tenant, age=age, lease=lease)
    valkey.zadd(HOLDS, {str(uuid.uuid4()): 10**15})  # settled since the index was read
    holds = found("Holds")
    assert (holds.verdict, holds.figure) == (TIGHT, "4 running")
    assert holds.rows == [("acme", "2", "7 min"), ("globex", "1", "50 s")]
    assert "1 outlived" in holds.detail
    assert "reaper" in holds.todo


def test_it_lists_spool_files_by_their_oldest_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "HOME", tmp_path)
    assert found("Spool files").figure == "none"
    (tmp_path / "spool").mkdir()
    word = {"request_id": "x", "event": {"finished_at": "2026-01-01T00:00:00.000Z"}}
    (tmp_path / "spool" / "7-ab.jsonl").write_text(f"{json.dumps(word)}\n" * 3)
    (tmp_path / "spool" / "8-cd.jsonl").write_text("{ broken")
    (tmp_path / "spool" / "9-ef.jsonl").touch()
    spools = found("Spool files")
    assert (spools.verdict, spools.figure) == (TIGHT, "4 waiting")
    assert [(row[0], row[1]) for row in spools.rows] == [("8-cd.jsonl", "1"), ("7-ab.jsonl", "3")]
    assert re.fullmatch(r"[\d,]+ days", spools.rows[1][2])


def test_it_names_the_budgets_that_are_counted_anew(valkey: "redis.Redis") -> None:
    tenant = make_tenant("acme")
    Budget.objects.create(tenant=tenant, name="monthly", amount=5)
    assert found("Budgets being counted anew").rows == [("acme", "monthly", "month")]
    counters.keep(valkey)
    assert (found("Budgets being counted anew").verdict, list(found("Budgets being counted anew").rows)) == (GOOD, [])


def test_it_shows_what_the_last_check_of_the_books_found() -> None:
    checks = [
        {"name": "hours", "compared": 9, "total": 2, "differences": ["acme 2026-01-01: 3 is not 4", "more"]},
        {"name": "costs", "compared": 5, "total": 0, "differences": []},
    ]
    LedgerCheckRun.objects.create(differences=2, report={"checks": checks})
    books = found("Books")
    assert (books.verdict, books.figure) == (BAD, "2 differ")
    assert books.rows == [("hours", "9", "2", "acme 2026-01-01: 3 is not 4")]


def test_it_says_which_invoices_wait_and_for_what(client: Client, valkey: "redis.Redis") -> None:
    """Also a period that could not be closed, of which there is no draft. A tenant nobody invoices is not late."""
    make_seller()
    price = make_price()
    for slug in ("acme", "globex", "hooli", "umbrella"):
        make_customer(slug)
    BillingAccount.objects.filter(tenant="hooli").update(legal_entity=None)
    for slug in ("acme", "hooli"):
        use("2026-03-05 12:00", price, tenant=slug)
    use("2026-03-05 12:00", tenant="globex")
    use("2026-03-05 12:00", price, tenant="umbrella")
    TenantZone.objects.filter(tenant="umbrella").update(time_zone="Nowhere/Atlantis")
    make_invoices()
    waits = found("Invoices")
    assert (waits.verdict, waits.figure) == (BAD, "2 wait")
    assert [row[:2] for row in waits.rows] == [("umbrella", ""), ("globex", "2026-03")]
    assert "Atlantis" in waits.rows[0][2]
    assert "1,050 tokens of 2026-03 have no price" in waits.rows[1][2]
    noted = valkey.get(overdue.KEY)
    assert isinstance(noted, bytes)
    assert overdue.by_code(overdue.decode(noted) or []) == {"not_closed": 1, "unpriced": 1}
    client.force_login(User.objects.create_superuser("olga"))
    assert [card.value for card in today().cards if card.title == "Overdue invoices"] == ["1"]
    assert "Overdue invoices" in client.get("/admin/").content.decode()
    valkey.set(overdue.KEY, b"another version's")
    assert found("Invoices").verdict == QUIET
    valkey.delete(overdue.KEY)


def test_it_says_so_when_redis_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    shown, problem = sections()
    assert "Redis does not answer" in problem
    assert [section.title for section in shown] == ["Dead letters", "Spool files", "Books"]


def test_it_is_for_operators_alone(client: Client) -> None:
    assert client.get("/admin/settlement/").status_code == 302
    client.force_login(User.objects.create_user("sam", is_staff=True))
    assert client.get("/admin/settlement/").status_code == 200
    assert client.post("/admin/settlement/").status_code == 405


def test_it_says_whether_redis_forgets(valkey: "redis.Redis") -> None:
    title = "What Redis keeps"
    assert found(title).verdict == GOOD
    ways = [
        ({"maxmemory": "1gb", "maxmemory-policy": "volatile-lru"}, BAD, "volatile-lru"),
        ({"maxmemory": "1gb"}, GOOD, ""),
        ({"maxmemory": "0", "maxmemory-policy": "allkeys-lru"}, GOOD, ""),
        ({"maxmemory": str(valkey.info("memory")["used_memory"] + 2**18)}, TIGHT, "more memory"),
        ({"appendonly": "no"}, TIGHT, "append-only"),
    ]
    before = {"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "yes"}
    try:
        for setting, verdict, words in ways:
            for name, value in {**before, **setting}.items():
                valkey.config_set(name, value)
            section = found(title)
            assert (section.verdict, words in section.todo) == (verdict, True), section
    finally:
        for name, value in before.items():
            valkey.config_set(name, value)
