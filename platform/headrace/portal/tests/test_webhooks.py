"""Webhooks in the portal: made with a secret that is shown once, tested, paused, removed; never to the inside."""

import re
import time

from billing.budgets import delivery
from billing.models import BudgetAlert, Notice, WebhookEndpoint
from headrace.portal.tests.cast import Cast, browser
from headrace.portal.views.webhooks import CHECK
from headrace_core import sealing
from tenants.models import AuditEntry

ALL = "/t/acme/budgets/webhooks/"


def test_it_makes_one_and_shows_its_secret_once(cast: Cast) -> None:
    fay = browser("fay")
    answer = fay.post(f"{ALL}new/", {"url": "https://hooks.test/alerts"})
    endpoint = WebhookEndpoint.objects.get(url="https://hooks.test/alerts")
    found = re.search(r'id="webhook-secret"[^>]*>([\w-]{40,})<', answer.content.decode())
    assert found is not None
    assert (endpoint.tenant_id, sealing.open(endpoint.secret)) == ("acme", found[1])
    assert answer.headers["Cache-Control"] == "no-store"
    assert found[1] not in fay.get(ALL).content.decode()
    assert found[1] not in str(AuditEntry.objects.values_list("before", "after"))


def test_its_check_of_signatures_works(cast: Cast) -> None:
    scope: dict[str, object] = {}
    exec(CHECK, scope)
    header = delivery.signature("s", b"{}", at=int(time.time()))
    assert scope["is_ours"]("s", header, b"{}")  # type: ignore[operator]
    assert not scope["is_ours"]("s", header, b"{ }")  # type: ignore[operator]
    assert not scope["is_ours"]("s", delivery.signature("s", b"{}", at=1), b"{}")  # type: ignore[operator]


REFUSED = [
    "",
    "hooks",
    "http://hooks.test/",
    "https://localhost/",
    "https://127.0.0.1:5432/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::1]/",
    "https://user:password@hooks.test/",
    "https://hooks.test/",
]


def test_it_refuses_an_address_inside_or_there_already(cast: Cast) -> None:
    alice = browser("alice")
    for url in REFUSED:
        answer = alice.post(f"{ALL}new/", {"url": url})
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True), url
    assert WebhookEndpoint.objects.filter(tenant="acme").count() == 1


def test_it_puts_a_test_on_its_way_and_shows_what_became_of_it(cast: Cast) -> None:
    endpoint, alice = cast.acme.webhook, browser("alice")
    for _ in range(2):
        assert alice.post(f"{ALL}{endpoint.pk}/test/").status_code == 302
    notice = Notice.objects.get()
    assert (notice.tenant_id, notice.endpoint, notice.alert, notice.state) == ("acme", endpoint, None, "waiting")
    page = alice.get(ALL).content.decode()
    assert "on its way" in page
    assert 'hx-trigger="every 2s"' in page
    endpoint.secret = sealing.seal("x")
    endpoint.url = "https://127.0.0.1/"
    endpoint.save()
    delivery.deliver_due()
    page = alice.get(ALL).content.decode()
    assert "not sent: 127.0.0.1 is not on the public network" in page
    assert "given up" in page
    assert "hx-trigger" not in page
    assert not BudgetAlert.objects.exists()


def test_it_pauses_resumes_and_removes_with_the_log(cast: Cast) -> None:
    endpoint, alice = cast.acme.webhook, browser("alice")
    alice.post(f"{ALL}{endpoint.pk}/test/")
    for enabled in ("0", "1", "0"):
        alice.post(f"{ALL}{endpoint.pk}/switch/", {"enabled": enabled})
        endpoint.refresh_from_db()
        assert endpoint.enabled is (enabled == "1")
    alice.post(f"{ALL}{endpoint.pk}/remove/")
    assert not WebhookEndpoint.objects.filter(tenant="acme").exists()
    assert not Notice.objects.exists()
    assert WebhookEndpoint.objects.filter(tenant="globex").exists()
