"""What an operator set, a tenant's own owners and admins neither raise, soften nor remove; theirs may be tighter."""

import re
from decimal import Decimal

import pytest
from django.db import DatabaseError, connections

from billing.models import Budget
from headrace.portal.rows import APP, rows_of
from headrace.portal.tests.cast import Cast, browser
from headrace.portal.tests.test_budgets import form as budget_form
from headrace.portal.tests.test_budgets import limit_of
from tenants.models import ApiKey, ModelLimits, Project

LIMITS = "/t/acme/budgets/limits/"


def operators_budget(cast: Cast) -> Budget:
    return Budget.objects.create(tenant=cast.acme.tenant, name="ceiling", amount=50)


def test_an_operators_budget_is_read_only_and_says_so(cast: Cast) -> None:
    budget = operators_budget(cast)
    for name in ("alice", "ada", "fay"):
        client = browser(name)
        page = client.get(f"/t/acme/budgets/{budget.pk}/").content.decode()
        assert "set by your operator" in page
        assert f"/budgets/{budget.pk}/change/" not in page
        change = f"/t/acme/budgets/{budget.pk}/change/"
        refusal = client.get(change)
        assert refusal.status_code == 403
        assert "The budget ceiling was set by the platform&#x27;s operators" in refusal.content.decode()
        assert "role" not in re.sub(r'role="[^"]*"', "", refusal.content.decode())
        assert client.post(change, budget_form(amount="1000", hard="soft", enabled="")).status_code == 403
    budget.refresh_from_db()
    assert (budget.amount, budget.hard, budget.enabled) == (50, True, True)
    assert "set by your operator" in browser("vic").get("/t/acme/budgets/").content.decode()


def test_a_tenants_own_budget_stands_beside_it_and_stays_its_own(cast: Cast) -> None:
    operators_budget(cast)
    alice = browser("alice")
    assert alice.post("/t/acme/budgets/new/", budget_form(amount="10", set_by="operator")).status_code == 302
    own = Budget.objects.get(name="research")
    assert own.set_by == "tenant"
    assert alice.post(f"/t/acme/budgets/{own.pk}/change/", budget_form(amount="900", enabled="on")).status_code == 302
    assert [limit_of("research"), limit_of("ceiling")] == [Decimal(900), Decimal(50)]
    page = alice.get(f"/t/acme/budgets/{own.pk}/").content.decode()
    assert "set by your operator" not in page


@pytest.mark.parametrize("sql", [
    "UPDATE billing_budget SET amount = 1000 WHERE name = 'ceiling'",
    "UPDATE billing_budget SET enabled = false, hard = false WHERE name = 'ceiling'",
    "UPDATE billing_budget SET set_by = 'tenant' WHERE name = 'ceiling'",
    "DELETE FROM billing_budget WHERE name = 'ceiling'",
])  # fmt: skip
def test_the_database_keeps_an_operators_budget_from_the_portal(cast: Cast, sql: str) -> None:
    budget = operators_budget(cast)
    assert not allowed(sql)
    budget.refresh_from_db()
    assert (budget.amount, budget.hard, budget.enabled, budget.set_by) == (50, True, True, "operator")


def test_limits_of_a_project_and_a_key_go_up_to_what_an_operator_set(cast: Cast) -> None:
    project, key = cast.acme.project, cast.acme.key
    Project.objects.filter(pk=project.pk).update(concurrency=50)
    ApiKey.objects.filter(pk=key.pk).update(requests_per_minute=600)
    alice = browser("alice")
    for path, row, name, ceiling in (
        (f"/t/acme/projects/{project.slug}/", project, "concurrency", 50),
        (f"/t/acme/keys/{key.pk}/", key, "requests_per_minute", 600),
    ):
        said = {"name": row.name, "priority": "standard"}
        assert f"At most {ceiling}: set by your operator" in alice.get(path).content.decode()
        for wrong in (str(ceiling + 1), ""):
            answer = alice.post(path, said | {name: wrong})
            assert (answer.status_code, "it may be that or less" in answer.content.decode()) == (200, True), wrong
        for right in (ceiling - 40, ceiling):  # tighter, and back
            assert alice.post(path, said | {name: str(right), "max_prompt_tokens": "7"}).status_code == 302
            row.refresh_from_db()
            assert (getattr(row, name), row.max_prompt_tokens) == (right, 7)
        assert row.ceilings == {name: ceiling}  # what it sets beside it is its own
        assert alice.post(path, said | {name: str(ceiling)}).status_code == 302
        row.refresh_from_db()
        assert row.max_prompt_tokens is None


def test_limits_for_a_model_that_an_operator_set_are_not_removed(cast: Cast) -> None:
    row = cast.acme.limits
    alice = browser("alice")
    assert re.search(r"set by your operator", alice.get(LIMITS).content.decode())
    refusal = alice.post(f"{LIMITS}{row.pk}/remove/")
    assert (refusal.status_code, "Set by your operator" in refusal.content.decode()) == (403, True)
    whole = ModelLimits.objects.create(tenant=cast.acme.tenant, model="demo", concurrency=90)
    refusal = alice.get(f"{LIMITS}{whole.pk}/")
    assert (refusal.status_code, "Set by your operator" in refusal.content.decode()) == (403, True)
    assert browser("carol").get(f"/t/globex/budgets/limits/{whole.pk}/").status_code == 404
    assert alice.post(f"{LIMITS}{row.pk}/", {"concurrency": "10"}).status_code == 200
    assert alice.post(f"{LIMITS}{row.pk}/", {"concurrency": "2"}).status_code == 302
    row.refresh_from_db()
    assert row.limits == {"concurrency": 2}


@pytest.mark.parametrize("sql", [
    "UPDATE tenants_project SET concurrency = 51",
    "UPDATE tenants_project SET concurrency = NULL",
    "UPDATE tenants_project SET ceilings = '{}', concurrency = 60",
    "UPDATE tenants_modellimits SET concurrency = 10",
    "DELETE FROM tenants_modellimits",
])  # fmt: skip
def test_the_database_keeps_an_operators_limits_from_the_portal(cast: Cast, sql: str) -> None:
    Project.objects.filter(pk=cast.acme.project.pk).update(concurrency=50)
    assert not allowed(sql)
    assert Project.objects.get(pk=cast.acme.project.pk).concurrency == 50
    assert ModelLimits.objects.get(pk=cast.acme.limits.pk).concurrency == 9


def test_an_operator_lifts_it(cast: Cast) -> None:
    project = cast.acme.project
    for wanted, ceilings in ((50, {"concurrency": 50}), (80, {"concurrency": 80}), (None, {})):
        Project.objects.filter(pk=project.pk).update(concurrency=wanted)
        project.refresh_from_db()
        assert project.ceilings == ceilings
    assert allowed("UPDATE tenants_project SET concurrency = 1000")


def allowed(sql: str) -> bool:
    """Whether the portal's connection, as acme, may; and whether it then changed anything."""
    try:
        with rows_of("acme", who="alice", origin="test"), connections[APP].cursor() as cursor:
            cursor.execute(sql)
            return bool(cursor.rowcount > 0)
    except DatabaseError:
        return False
