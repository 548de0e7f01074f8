"""Who gets which page, out of the table of addresses: a new one without a rule, or of a kind unknown here, fails."""

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from headrace.portal import urls
from headrace.portal.access import OPERATOR, TABLE, Rule
from headrace.portal.tests.cast import ROLES, Cast, Team, browser

PAGES = {pattern.name: pattern for pattern in urls.urlpatterns if "tenant" in pattern.pattern.converters}
OUTSIDE = {"home", "join"}  # of no tenant: tests of their own
METHODS = ("GET", "POST", "DELETE")  # any other is treated as DELETE is: it has no rule
WORDS = ("Corporation", "acme-key", "new@acme.example")  # what a page of acme's would give away


def rule(page: URLPattern) -> Rule:
    found = getattr(page.callback, "rule", None)
    assert isinstance(found, Rule), f"{page.name} has no rule"
    return found


def address(page: URLPattern, team: Team, *, things_of: Team | None = None, cast: Cast) -> str:
    """The page in `team`'s portal, about something that belongs to `things_of`."""
    things = things_of or team
    of_acme = things is cast.acme
    known: dict[str, object] = {
        "tenant": team.tenant.slug,
        "key": things.key.pk,
        "slug": things.project.slug,
        "member": cast.members["bob" if of_acme else "carol"].pk,
        "invitation": things.invitation.pk,
        "budget": things.budget.pk,
        "limits": things.limits.pk,
        "webhook": things.webhook.pk,
        "invoice": things.invoice.pk,
        "position": 1,
        "form": "json",
        "request_id": "0190c1d0-0000-7000-8000-000000000000",
    }
    return reverse(f"portal:{page.name}", kwargs={name: known[name] for name in page.pattern.converters})


def ask(client: Client, method: str, url: str) -> tuple[int, str]:
    answer = client.generic(method, url)
    if answer.streaming:
        answer.close()  # events without end; its headers are there by now
        return answer.status_code, ""
    text = answer.content
    return answer.status_code, text.decode()


def test_it_knows_every_address() -> None:
    assert {pattern.name for pattern in urls.urlpatterns} - PAGES.keys() == OUTSIDE
    for page in PAGES.values():
        assert rule(page).methods, page.name


@pytest.fixture(scope="module")
def clients(shared: Cast) -> dict[str, Client]:
    """Everybody, signed in once."""
    return {name: browser(name) for name in (*ROLES, "carol", "oscar", "ian", "opal")} | {"": browser()}


@pytest.mark.parametrize("name", PAGES)
def test_it_shows_members_of_other_tenants_and_strangers_nothing(
    shared: Cast, clients: dict[str, Client], name: str
) -> None:
    url = address(PAGES[name], shared.acme, cast=shared)
    for method in METHODS:
        for who in ("carol", "oscar"):
            status, text = ask(clients[who], method, url)
            assert status == 404, (who, method, status)
            assert not any(word in text for word in WORDS), text
        answer = clients[""].generic(method, url)
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (302, "/account/login/"), method


@pytest.mark.parametrize("name", PAGES)
def test_it_obeys_the_table_of_roles(shared: Cast, clients: dict[str, Client], name: str) -> None:
    page = PAGES[name]
    url = address(page, shared.acme, cast=shared)
    for who, role in ROLES.items():
        for method in METHODS:
            wanted = rule(page).of(method)
            if wanted is not None and role in TABLE[wanted]:
                if method == "GET" and "request_id" not in page.pattern.converters:
                    assert ask(clients[who], method, url)[0] == 200, who
                continue  # what it then does has tests of its own
            status, text = ask(clients[who], method, url)
            assert status == (405 if wanted is None else 403), (who, method, status)
            assert not any(word in text for word in WORDS), text


@pytest.mark.parametrize("name", PAGES)
def test_it_lets_operators_look_and_change_nothing(shared: Cast, clients: dict[str, Client], name: str) -> None:
    page = PAGES[name]
    url = address(page, shared.acme, cast=shared)
    for method in METHODS:
        wanted = rule(page).of(method)
        status, _ = ask(clients["opal"], method, url)
        if wanted is None:
            assert status == 405, method
        elif OPERATOR in TABLE[wanted]:
            assert status == (404 if "request_id" in page.pattern.converters else 200), (method, status)
        else:
            assert status == 403, method


@pytest.mark.parametrize("name", PAGES)
def test_it_closes_a_suspended_tenants_pages(shared: Cast, clients: dict[str, Client], name: str) -> None:
    url = address(PAGES[name], shared.initech, cast=shared)
    for method in METHODS:
        status, text = ask(clients["ian"], method, url)
        assert status == 403, (method, status)
        assert "Initech" not in text


# Pages of one thing. A short name (`slug`) is each tenant's own: another's names nothing here, or something of ours.
OF_ONE = [
    name
    for name, page in PAGES.items()
    if (named := page.pattern.converters.keys() - {"tenant", "form"}) and "slug" not in named
]


@pytest.mark.parametrize("name", OF_ONE)
def test_it_finds_nothing_of_another_tenant_in_ones_own(shared: Cast, clients: dict[str, Client], name: str) -> None:
    page, alice = PAGES[name], clients["alice"]
    url = address(page, shared.acme, things_of=shared.globex, cast=shared)
    for method in rule(page).methods:
        status, text = ask(alice, method, url)
        assert status == 404, (method, status)
        assert "globex" not in text.lower()


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if rule(page).post])
def test_it_wants_a_token_against_forged_requests(shared: Cast, name: str) -> None:
    client = browser("alice", enforce_csrf_checks=True)
    assert client.post(address(PAGES[name], shared.acme, cast=shared)).status_code == 403


@pytest.mark.parametrize("slug", ["nothing", "acme.", "ACME", "acme%00", "acme' OR true --", "a" * 64])
def test_it_knows_no_tenant_by_another_name(shared: Cast, clients: dict[str, Client], slug: str) -> None:
    assert clients["alice"].get(f"/t/{slug}/").status_code == 404
