"""No address of portal, account pages or console answers 500, whatever its path, query or form holds, to any role."""

import random
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern

from headrace.portal.tests.cast import Cast, browser
from headrace.portal.tests.fuzz.addresses import HOSTILE, NAMES, addresses, existing, link
from headrace.portal.tests.fuzz.forms import Form, forms_of

ROLES = ("", "alice", "ada", "bob", "fay", "vic", "oscar", "opal")
MEMBERS = {"alice", "opal"}  # who see most of the portal and of the admin: the others see parts of the same pages
ADDRESSES = dict(addresses())
# Signing out ends the session that the test goes on with; jsi18n and favicon are files of Django's.
LEFT_OUT = {"account_logout", "admin:logout", "admin:jsi18n"}
PATHS, QUERIES, VALUES = 2, 2, 2  # for each parameter of an address; at each address; for each field of each form


def paths(name: str, pattern: URLPattern, chance: random.Random) -> Iterator[str]:
    """One with what exists, some with what does not."""
    parameters = pattern.pattern.converters
    good = {each: (existing(name, each, "acme") or [None])[0] for each in parameters}
    if all(value is not None for value in good.values()) and (path := link(name, good)):
        yield path
    for each in parameters:
        for value in chance.sample([*HOSTILE, 1, 2**63, 2**31], PATHS):
            others = {other: 1 if known is None else known for other, known in good.items()}
            if path := link(name, others | {each: value}):
                yield path


def check(answer: HttpResponseBase, what: object) -> None:
    answer.close()
    assert answer.status_code < 500, what


@pytest.mark.parametrize("role", ROLES)
def test_no_path_or_query_breaks_a_page(cast: Cast, role: str) -> None:
    chance = random.Random(role)
    client = browser(role, raise_request_exception=False)
    for name, pattern in ADDRESSES.items():
        if name in LEFT_OUT:
            continue
        if role not in MEMBERS and name.startswith(("admin:", "portal:")) and chance.random() > 0.1:
            continue  # nothing but the same refusal
        for path in paths(name, pattern, chance):
            check(client.get(path), (role, name, path))
            check(client.post(path), (role, name, path))
        first = next(paths(name, pattern, chance), None)
        for _ in range(QUERIES if first and role in MEMBERS else 0):
            query = urlencode(
                {each: chance.choice(HOSTILE) for each in chance.sample(NAMES, 4)}, errors="surrogatepass"
            )
            check(client.get(f"{first}?{query}"), (role, name, first, query))


@pytest.mark.parametrize("role", ["alice", "opal"])
def test_no_form_breaks_a_page(cast: Cast, role: str) -> None:
    chance = random.Random(role)
    client = browser(role, raise_request_exception=False)
    for name, pattern in ADDRESSES.items():
        path = next(paths(name, pattern, chance), None)
        if path is None or name in LEFT_OUT:
            continue
        page = client.get(path)
        if page.status_code != 200 or not page.headers.get("Content-Type", "").startswith("text/html"):
            page.close()
            continue
        for form in forms_of(page.content.decode()):
            target = form.action or path
            if target.startswith("/") and "logout" not in target:
                fill(client, form, target, chance, name)


def fill(client: Client, form: Form, target: str, chance: random.Random, name: str) -> None:
    send = client.post if form.method == "post" else client.get
    for field in form.fields:
        for value in chance.sample(HOSTILE, VALUES if name.startswith("portal:") else 1):
            try:
                answer = send(target, form.fields | {field: value})
            except UnicodeEncodeError:  # half a character, which no client can write into a form
                continue
            check(answer, (name, target, field, value))
