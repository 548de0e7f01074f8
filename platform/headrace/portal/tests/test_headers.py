"""What pages say to the browser of themselves, those that fail included."""

import pytest

from headrace.portal.headers import ADMIN_POLICY, PORTAL_POLICY
from headrace.portal.tests.cast import Cast, browser


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/account/login/", 200),
        ("/nothing/", 404),
        ("/join/x/", 404),
        ("/t/acme/", 200),
        ("/t/globex/", 404),
        ("/", 302),
    ],
)
def test_it_allows_no_script_but_its_own_and_no_copy(shared: Cast, path: str, status: int) -> None:
    answer = browser("alice").get(path, follow=path == "/account/login/")
    assert answer.status_code == status
    assert answer.headers["Content-Security-Policy"] == PORTAL_POLICY
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in PORTAL_POLICY


def test_it_says_the_admins_policy_apart(shared: Cast) -> None:
    assert browser("opal").get("/admin/").headers["Content-Security-Policy"] == ADMIN_POLICY


def test_it_has_one_door_for_people(shared: Cast) -> None:
    """The admin's own login would pass over allauth's limits and its second factor."""
    answer = browser().get("/admin/login/?next=/admin/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/login/?next=/admin/")


def test_it_lets_nobody_guess_passwords_for_long(shared: Cast) -> None:
    client, told = browser(), ""
    for _ in range(15):
        answer = client.post("/account/login/", {"login": "vic@example.com", "password": "wrong wrong wrong"})
        told = answer.content.decode()
        if answer.status_code == 429 or "Too many failed" in told:
            return
    raise AssertionError(told)
