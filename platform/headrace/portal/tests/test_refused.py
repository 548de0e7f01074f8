"""Who was refused and why, as a tenant's people see it: their own, keys by name to whom keys are shown."""

import csv
import io
import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

from billing.drain import drain_all
from billing.models import RefusedHour
from billing.tests.stream import append, connect, usage_event
from headrace.portal.tests.cast import Cast, browser
from tenants.models import Tenant

PAGE = "/t/acme/budgets/refused/"


def refuse(tenant: Tenant, key: str, code: str, requests: int, at: datetime | None = None) -> None:
    hour = (at or timezone.now()).replace(minute=0, second=0, microsecond=0)
    RefusedHour.objects.create(tenant=tenant.pk, hour=hour, project="web", key=key, code=code, requests=requests)


def test_it_says_who_was_refused_and_why(cast: Cast) -> None:
    key = cast.acme.key.pk
    refuse(cast.acme.tenant, key, "budget_exhausted", 1300)
    refuse(cast.acme.tenant, key, "rate_limit_exceeded", 700)
    refuse(cast.globex.tenant, cast.globex.key.pk, "no_capacity", 99)
    page = browser("alice").get(PAGE).content.decode()
    for told in ("A budget is used up", "<code>budget_exhausted</code>", "1,300", "65", "web/acme-key", "2,000"):
        assert told in page, told
    assert page.index("A budget is used up") < page.index("A limit was reached")
    assert "no_capacity" not in page
    assert "Whose, and why" in browser("alice").get("/t/acme/").content.decode()


def test_finance_reads_of_one_key_and_not_which(cast: Cast) -> None:
    refuse(cast.acme.tenant, cast.acme.key.pk, "no_capacity", 5)
    page = browser("fay").get(PAGE).content.decode()
    assert "All replicas were busy" in page
    assert cast.acme.key.pk not in page
    assert "acme-key" not in page


def test_it_is_of_the_period_asked_for(cast: Cast) -> None:
    refuse(cast.acme.tenant, cast.acme.key.pk, "no_capacity", 5, timezone.now() - timedelta(days=20))
    refuse(cast.acme.tenant, cast.acme.key.pk, "a_code_to_come", 7)
    assert "no_capacity" not in browser("vic").get(PAGE).content.decode()
    page = browser("vic").get(f"{PAGE}?period=30d").content.decode()
    assert "no_capacity" in page
    assert "a_code_to_come" in page


def test_it_says_when_nobody_was(cast: Cast) -> None:
    assert "Nobody was refused" in browser("alice").get(PAGE).content.decode()


def test_the_overview_counts_them_beside_what_was_answered(cast: Cast) -> None:
    with connect() as client:
        append(client, usage_event())
        drain_all(client)
    assert "refused before any model was asked" not in browser("alice").get("/t/acme/").content.decode()
    refuse(cast.acme.tenant, cast.acme.key.pk, "no_capacity", 1234)
    page = browser("alice").get("/t/acme/").content.decode()
    assert "<span>refused beside them</span>1,234" in page
    assert f"{PAGE}?period=7d" in page


def test_operators_see_it_in_the_list_of_tenants(cast: Cast) -> None:
    refuse(cast.acme.tenant, cast.acme.key.pk, "no_capacity", 4321)
    page = browser("opal").get("/admin/tenants/tenant/").content.decode()
    assert "Refused, 24 h" in page
    assert "4,321" in page


def table(name: str, query: str) -> list[dict[str, str]]:
    answer = browser(name).get(f"{PAGE}export.csv?{query}")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_it_draws_them_over_time_by_reason_and_says_the_same_as_csv(cast: Cast) -> None:
    key, now = cast.acme.key.pk, timezone.localtime(timezone=ZoneInfo("Europe/Berlin"))
    before = now - timedelta(days=1)
    for number, code in enumerate(("budget_exhausted", "rate_limit_exceeded", "no_capacity", "a_code", "b_code")):
        refuse(cast.acme.tenant, key, code, 100 - number)
    refuse(cast.acme.tenant, key, "no_capacity", 7, before)
    refuse(cast.globex.tenant, cast.globex.key.pk, "no_capacity", 9999)
    page = browser("alice").get(PAGE)
    drawn = json.loads(page.context["chart"])
    assert [each["name"] for each in drawn["series"]] == [
        "All replicas were busy", "A budget is used up", "A limit was reached", "a_code", "All others",
    ]  # fmt: skip
    assert [each["values"][-2:] for each in drawn["series"]] == [[7, 98], [0, 100], [0, 99], [0, 97], [0, 96]]
    assert (drawn["unit"], drawn["step"], len(drawn["times"])) == ("requests", "day", 7)
    assert "by=time" in page.content.decode()
    lines = table("alice", "period=7d&by=time")
    assert lines[0] == {
        "day": before.date().isoformat(), "code": "no_capacity", "reason": "All replicas were busy", "requests": "7",
    }  # fmt: skip
    assert (sum(int(line["requests"]) for line in lines), len(lines)) == (497, 6)
    hours = table("alice", "period=today&by=time")
    assert {line["hour"] for line in hours} == {now.replace(minute=0).isoformat(timespec="minutes")}
    assert [(line["code"], line["status"], line["requests"]) for line in table("alice", "by=reason")][:2] == [
        ("no_capacity", "503", "105"), ("budget_exhausted", "402", "100"),
    ]  # fmt: skip


def test_its_csv_shows_keys_to_whom_the_page_does_and_no_formula(cast: Cast) -> None:
    key = cast.acme.key.pk
    refuse(cast.acme.tenant, key, "no_capacity", 5)
    refuse(cast.acme.tenant, "-1+cmd", "=HYPERLINK(1)", 4)
    refuse(cast.acme.tenant, " =1", "\uff1d1", 3)
    first, second, third = table("alice", "by=key")
    assert (third["key"], third["code"]) == ("' =1", "'\uff1d1")
    assert (first["project"], first["key"], first["key_name"]) == ("web", key, "web/acme-key")
    assert (second["key"], second["code"], second["reason"]) == ("'-1+cmd", "'=HYPERLINK(1)", "'=HYPERLINK(1)")
    assert list(table("fay", "by=key")[0]) == ["project", "code", "reason", "requests"]
    assert list(table("alice", "by=nonsense&period=nonsense")[0]) == ["code", "reason", "status", "requests"]
