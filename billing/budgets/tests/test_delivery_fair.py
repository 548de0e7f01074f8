"""One tenant's many, slow or dead notices delay nobody else's."""

import socket
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone

from billing.budgets import alerts, changing, counters, delivery, delivery_slots, outgoing
from billing.models import Budget, BudgetAlert, Delivery, Notice, WebhookEndpoint
from billing.tests.stream import connect
from headrace_core import sealing
from tenants.models import Member, Tenant
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


class Places:
    """Endpoints by their path: `/fast...` answers at once, `/slow...` once `let_go` is set. `taken`: paths in order."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.let_go = threading.Event()
        self.held = threading.Semaphore(0)  # released for each request that `let_go` is waited for by
        places = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if self.path.startswith("/slow"):
                    places.held.release()
                    places.let_go.wait(30)
                places.taken.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.let_go.set()
        delivery_slots.UNDER_WAY.wait_idle(20)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def places(settings: Any) -> Iterator[Places]:
    settings.WEBHOOK_HTTP, settings.WEBHOOK_NETWORKS = True, [ip_network("127.0.0.0/8")]
    places = Places()
    yield places
    places.close()


def endpoint(tenant: Tenant, url: str) -> WebhookEndpoint:
    return WebhookEndpoint.objects.create(tenant=tenant, url=url, secret=sealing.seal("s"))


def notices(tenant: Tenant, number: int, *where: WebhookEndpoint, email: str = "") -> None:
    """So many alerts, each with a notice to each place."""
    budget = Budget.objects.create(tenant=tenant, name=f"of-{number}", amount=Decimal(1), thresholds=[50])
    amounts: dict[str, Any] = {"spent": Decimal(1), "amount": Decimal(1), "window_start": timezone.now()}
    found = BudgetAlert.objects.bulk_create(
        BudgetAlert(budget=budget, tenant=tenant, threshold=percent + 1, **amounts) for percent in range(number)
    )
    Notice.objects.bulk_create(Notice(tenant=tenant, alert=alert, endpoint=one) for alert in found for one in where)
    if email:
        Notice.objects.bulk_create(Notice(tenant=tenant, alert=alert, email=email) for alert in found)


def waiting(tenant: Tenant) -> int:
    return Notice.objects.filter(tenant=tenant, state=Delivery.WAITING).count()


def test_two_thousand_of_one_tenant_do_not_delay_another_s(places: Places) -> None:
    loud, quiet = make_tenant(), make_tenant("globex")
    notices(loud, 2000, endpoint(loud, f"{places.url}/fast-loud"))
    notices(quiet, 1, endpoint(quiet, f"{places.url}/fast-quiet"), email="carol@globex.test")
    assert delivery.deliver_due(most=20) == 20
    assert "/fast-quiet" in places.taken
    assert [message.to for message in mail.outbox] == [["carol@globex.test"]]
    assert (waiting(quiet), waiting(loud)) == (0, 2000 - 18)


def test_slow_endpoints_of_many_tenants_delay_nobody_s(places: Places) -> None:
    for number in range(10):
        tenant = make_tenant(f"slow-{number}")
        notices(tenant, 5, *(endpoint(tenant, f"{places.url}/slow-{number}-{each}") for each in range(4)))
    quiet = make_tenant("globex")
    notices(quiet, 10, endpoint(quiet, f"{places.url}/fast"))

    def deliver() -> None:
        delivery.deliver_due()
        connection.close()

    run = threading.Thread(target=deliver)
    run.start()
    try:
        for _ in range(20):
            assert places.held.acquire(timeout=20)
        deadline = time.monotonic() + 20
        while places.taken.count("/fast") < 10:
            assert time.monotonic() < deadline, places.taken
            time.sleep(0.01)
        assert set(places.taken) == {"/fast"}
        assert not places.held.acquire(blocking=False), "more than two at a time of a tenant"
    finally:
        places.let_go.set()
        run.join()


def test_a_name_that_is_not_found_in_time_is_given_up(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    answered, real = threading.Event(), socket.getaddrinfo

    def silent(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "silent.test":
            answered.wait(30)
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    monkeypatch.setattr(outgoing, "SECONDS", 0.5)
    tenant, quiet = make_tenant(), make_tenant("globex")
    notices(tenant, 3, endpoint(tenant, "http://silent.test/hook"))
    notices(quiet, 1, endpoint(quiet, f"{places.url}/fast"))
    try:
        assert delivery.deliver_due() == 2
    finally:
        answered.set()
    assert places.taken == ["/fast"]
    assert "ConnectTimeout" in Notice.objects.get(tenant=tenant, attempts=1).answer
    assert waiting(tenant) == 3


def test_tenants_take_turns_when_alerts_are_noted(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.EMAIL_HOST = ""
    first, second = make_tenant(currency="EUR"), make_tenant("globex", currency="EUR")
    made = [
        Budget.objects.create(tenant=tenant, name=f"b{number}", amount=Decimal(100), thresholds=[10, 20, 30])
        for tenant, budgets in ((first, 5), (second, 1))
        for number in range(budgets)
    ]
    with connect() as client:
        counters.keep(client)
        for budget in made:
            changing.adjust_budget(client, budget=budget, nano=50 * 10**9, who="t", origin="t", reason="r")
        found = alerts.find_alerts(client)
    assert [alert.tenant_id == second.pk for alert in found].count(True) == 3
    assert {found[0].tenant_id, found[1].tenant_id} == {first.pk, second.pk}


def test_no_more_than_so_many_of_a_tenant_wait(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MOST_WAITING", 4)
    tenant = make_tenant(currency="EUR")
    for number in range(3):
        endpoint(tenant, f"https://hooks.test/{number}")
    budget = Budget.objects.create(tenant=tenant, name="monthly", amount=Decimal(100), thresholds=[50, 80])
    with connect() as client:
        counters.keep(client)
        changing.adjust_budget(client, budget=budget, nano=90 * 10**9, who="t", origin="t", reason="r")
        assert len(alerts.find_alerts(client)) == 2
    assert waiting(tenant) == 4
    told = Notice.objects.filter(state=Delivery.FAILED).values_list("answer", flat=True)
    assert set(told) == {"not sent: 4 notices of the tenant wait already"}
    assert not Member.objects.exists()
