"""Limits in the portal: shown to all, set for one model by those whose projects and keys they are."""

from headrace.portal.tests.cast import Cast, browser
from tenants.models import AuditEntry, ModelLimits
from tenants.tests.cast import make_key

ALL = "/t/acme/budgets/limits/"


def form(**changes: object) -> dict[str, object]:
    return {"project": "web", "key": "", "model": "demo", "requests_per_minute": "60", "concurrency": "4"} | changes


def test_it_shows_the_limits_of_all_levels(cast: Cast) -> None:
    cast.acme.tenant.requests_per_minute = 1234
    cast.acme.tenant.save()
    cast.acme.project.concurrency = 77
    cast.acme.project.save()
    cast.acme.key.output_tokens_per_minute = 55_555
    cast.acme.key.save()
    page = browser("vic").get(ALL).content.decode()
    for text in ("1,234", "77", "55,555", "web/acme-key", "demo"):
        assert text in page
    seen_by_finance = browser("fay").get(ALL).content.decode()
    assert "1,234" in seen_by_finance
    assert "acme-key" not in seen_by_finance
    assert "55,555" not in seen_by_finance


def test_it_sets_changes_and_removes_limits_for_a_model(cast: Cast) -> None:
    ada = browser("ada")
    assert ada.post(f"{ALL}new/", form()).status_code == 302
    row = ModelLimits.objects.get(project="web")
    assert (row.model, row.limits) == ("demo", {"requests_per_minute": 60, "concurrency": 4})
    assert "already" in ada.post(f"{ALL}new/", form()).content.decode()
    assert ada.post(f"{ALL}{row.pk}/", {"concurrency": "9", "model": "other"}).status_code == 302
    row.refresh_from_db()
    assert (row.model, row.limits) == ("demo", {"concurrency": 9})
    assert ada.post(f"{ALL}{row.pk}/remove/").status_code == 302
    assert not ModelLimits.objects.filter(project="web").exists()
    assert AuditEntry.objects.filter(who="ada@example.com", subject__contains="modellimits").count() == 3


def test_it_lets_developers_set_those_of_keys_alone(cast: Cast) -> None:
    bob = browser("bob")
    key = make_key(cast.acme.project, "mine")
    assert bob.post(f"{ALL}new/", form(key="mine")).status_code == 302
    assert ModelLimits.objects.get(key=key.pk).project == ""
    assert "Say whose" in bob.post(f"{ALL}new/", form()).content.decode()
    of_project = ModelLimits.objects.create(tenant=cast.acme.tenant, project="web", model="demo", concurrency=1)
    for path in (f"{ALL}{of_project.pk}/", f"{ALL}{of_project.pk}/remove/"):
        assert bob.post(path, {"concurrency": "9"}).status_code == 403
    assert ModelLimits.objects.get(pk=of_project.pk).concurrency == 1


def test_it_keeps_the_operators_limits_out_of_reach(cast: Cast) -> None:
    whole = ModelLimits.objects.create(tenant=cast.acme.tenant, model="demo", concurrency=1)
    alice = browser("alice")
    for path in (f"{ALL}{whole.pk}/", f"{ALL}{whole.pk}/remove/"):
        assert alice.post(path, {"concurrency": "9"}).status_code == 403
    assert "Say whose" in alice.post(f"{ALL}new/", form(project="", key="")).content.decode()
    assert ModelLimits.objects.get(pk=whole.pk).concurrency == 1


def test_it_refuses_what_a_limit_cannot_be(cast: Cast) -> None:
    for wrong in (
        {"requests_per_minute": "0"},
        {"requests_per_minute": "x"},
        {"requests_per_minute": "", "concurrency": ""},
        {"model": ""},
        {"model": "nothing"},
        {"project": "nothing"},
        {"key": "globex-key"},
    ):
        answer = browser("alice").post(f"{ALL}new/", form(**wrong))
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True), wrong
    assert not ModelLimits.objects.filter(tenant="acme", project="web").exists()
