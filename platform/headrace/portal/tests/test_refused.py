"""Who was refused and why, as a tenant's people see it: their own, keys by name to whom keys are shown."""

from datetime import datetime, timedelta

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
