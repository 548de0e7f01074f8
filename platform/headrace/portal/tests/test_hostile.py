"""Whatever is written into a field or an address: it is refused, or kept as it is, and every page goes on."""

from typing import Any

import pytest
from django.test import Client

from headrace.portal.tests.cast import Cast, browser
from tenants.models import Project, Tenant

VALUES = (
    "", " ", "-5", "0", "NaN", "Infinity", "1e400", "9" * 40, "9223372036854775808", "x" * 10_000, "a\x00b", "a\nb",
    "<script>alert(1)</script>", "=1+1", "\u202eevil\u202c", "\u200b", "\u0663", "9999-12-31T23:59", "0001-01-01T00:00",
)  # fmt: skip
FORMS: dict[str, dict[str, str]] = {
    "keys/new/": {
        "name": "ci", "project": "1", "models": "demo", "priority": "batch", "expires_at": "", "concurrency": "",
        "max_output_tokens": "",
    },
    "keys/": {"text": ""},
    "projects/new/": {"name": "App", "slug": "app", "requests_per_minute": ""},
    "budgets/new/": {
        "name": "b", "amount": "5", "period": "month", "hard": "soft", "thresholds": "50", "project": "", "key": "",
        "model": "", "extra": "1", "extra_until": "2099-01-01T00:00",
    },
    "budgets/limits/new/": {"project": "web", "key": "", "model": "demo", "input_tokens_per_minute": "7"},
    "budgets/webhooks/new/": {"url": "https://hooks.test/2"},
    "settings/": {"name": "Acme", "time_zone": "Europe/Berlin"},
    "members/invite/": {"email": "new@acme.example", "role": "viewer"},
    "playground/key/": {"project": "web"},
}  # fmt: skip
PAGES = ("", "keys/", "projects/", "budgets/", "budgets/limits/", "members/", "audit/", "settings/")


@pytest.mark.parametrize("path", FORMS)
def test_it_answers_whatever_is_written_into_a_form(cast: Cast, path: str) -> None:
    Tenant.objects.filter(pk="acme").update(time_zone="America/New_York")  # whose last moment of 9999 is in UTC's 10000
    alice, good = browser("alice"), dict(FORMS[path])
    if path == "keys/new/":
        good["project"] = str(cast.acme.project.pk)
    for field in good:
        for value in VALUES:
            answer = alice.post(f"/t/acme/{path}", good | {field: value})
            assert answer.status_code in {200, 302, 400}, (field, value, answer.status_code)
            assert b"<script>alert" not in answer.content, field
    for page in PAGES:
        answer = alice.get(f"/t/acme/{page}")
        assert answer.status_code == 200, page
        assert b"<script>alert" not in answer.content, page


@pytest.mark.parametrize("name", ["\u202eevil", "\u200b", "two\nlines", "\x1b[2J"])
def test_it_takes_no_name_that_does_not_show(cast: Cast, name: str) -> None:
    page = browser("alice").post("/t/acme/projects/new/", {"name": name, "slug": "app"}).content.decode()
    assert "errorlist" in page
    assert not Project.objects.filter(slug="app").exists()


@pytest.fixture(scope="module")
def alice(shared: Cast) -> Client:
    return browser("alice")


@pytest.mark.parametrize(
    "path",
    [
        "keys/%00/", "keys/%00/revoke/", "keys/" + "x" * 3000 + "/", "projects/%00/", "projects/%E2%80%AE/",
        "invoices/current/as/%00/", "invoices/current/as/exe/", f"budgets/{'9' * 30}/", f"budgets/limits/{'9' * 30}/",
        "requests/ffffffff-ffff-ffff-ffff-ffffffffffff/",
    ],
)  # fmt: skip
def test_it_finds_nothing_at_an_address_that_can_be_nobodys(alice: Client, path: str) -> None:
    assert alice.get(f"/t/acme/{path}").status_code == 404


@pytest.mark.parametrize("value", ["%00", "9" * 30, "-1", "%27%20OR%20true--", "x" * 3000, "%E2%80%AE"])
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", ("period",)),
        ("usage/", ("period", "by", "project", "key", "label", "value")),
        ("usage/export.csv", ("period", "by", "model")),
        ("requests/", ("before", "status", "key")),
        ("keys/", ("page", "q")),
        ("audit/", ("who", "before")),
        ("invoices/", ("page",)),
        ("budgets/alerts/", ("before",)),
        ("budgets/refused/", ("period",)),
        ("playground/", ("model",)),
    ],
)
def test_it_takes_any_question(alice: Client, path: str, names: tuple[str, ...], value: Any) -> None:
    query = "&".join(f"{name}={value}" for name in names)
    assert alice.get(f"/t/acme/{path}?{query}").status_code == 200
    assert alice.get(f"/t/acme/{path}?{names[-1]}=label:{value}").status_code == 200
