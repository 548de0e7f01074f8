"""Alerts: once a threshold and window, however many workers; e-mails and signed webhooks until they are taken."""

import hmac
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from billing.budgets import alerts, changing, counters, delivery
from billing.models import Budget, BudgetAlert, Delivery, Notice, WebhookEndpoint
from billing.tests.stream import connect
from headrace_core import sealing
from tenants.models import Member
from tenants.tests.cast import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "a secret of the endpoint's"


class Receiver:
    """An HTTP server that keeps what it is sent and answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.taken: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.taken.append((dict(self.headers), body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_HTTP, settings.WEBHOOK_NETWORKS = True, [ip_network("127.0.0.0/8")]
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def budget(receiver: Receiver, settings: Any) -> Budget:
    settings.EMAIL_HOST = "mail.test"
    tenant = make_tenant(currency="EUR")
    for name, role in (("olga", "owner"), ("fred", "finance"), ("dev", "developer")):
        user = User.objects.create(username=name, email=f"{name}@acme.test")
        Member.objects.create(tenant=tenant, user=user, role=role)
    WebhookEndpoint.objects.create(tenant=tenant, url=receiver.url, secret=sealing.seal(SECRET))
    budget = Budget.objects.create(tenant=tenant, name="monthly", amount=Decimal(100), thresholds=[50, 80, 100])
    with connect() as client:
        counters.keep(client)
    return budget


@contextmanager
def as_owner() -> Iterator[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE headrace_owner")
        yield cursor
        cursor.execute("SET ROLE headrace_system")


def spend(budget: Budget, amount: int) -> None:
    with connect() as client:
        changing.adjust_budget(
            client, budget=budget, nano=amount * 10**9, who="test", origin="test", reason="to have it spent"
        )


def look(_: int = 0) -> int:
    with connect() as client:
        found = len(alerts.find_alerts(client))
    connection.close()
    return found


def test_it_tells_each_threshold_once_with_two_workers_looking(budget: Budget) -> None:
    told = []
    for amount in (49, 1, 29, 1, 60):
        spend(budget, amount)
        with ThreadPoolExecutor(4) as threads:
            told.append(sum(threads.map(look, range(12))))
    assert told == [0, 1, 0, 1, 1]
    assert sorted(BudgetAlert.objects.values_list("threshold", flat=True)) == [50, 80, 100]
    assert Notice.objects.count() == 9  # two people and an endpoint, of each


def test_alert_that_the_database_refuses_keeps_no_other_from_being_told(
    budget: Budget, caplog: pytest.LogCaptureFixture
) -> None:
    other = Budget.objects.create(
        tenant=make_tenant("globex", currency="EUR"), name="other", amount=Decimal(100), thresholds=[50]
    )
    with connect() as client:
        counters.keep(client)
    spend(budget, 60)
    spend(other, 60)
    with as_owner() as cursor:
        cursor.execute("ALTER TABLE billing_budgetalert ADD CONSTRAINT no_acme CHECK (tenant_id <> 'acme')")
    try:
        assert look() == 1
    finally:
        with as_owner() as cursor:
            cursor.execute("ALTER TABLE billing_budgetalert DROP CONSTRAINT no_acme")
    assert BudgetAlert.objects.get().budget == other
    assert "acme/monthly at 50% is not told" in caplog.text
    assert look() == 1


def test_notice_that_cannot_be_sent_is_not_tried_for_ever(budget: Budget, caplog: pytest.LogCaptureFixture) -> None:
    spend(budget, 60)
    look()
    Notice.objects.filter(email="olga@acme.test").update(email="olga@acme.test\nx")  # no address of a letter
    now = timezone.now()
    for _ in range(8):
        delivery.deliver_due(now=now)
        now += timedelta(days=1)
    notice = Notice.objects.get(email__startswith="olga")
    assert (notice.state, notice.attempts, notice.answer) == ("failed", 8, "not sent: BadHeaderError")
    assert set(Notice.objects.exclude(pk=notice.pk).values_list("state", flat=True)) == {"delivered"}
    assert "cannot be sent" in caplog.text


def test_it_tells_again_in_the_next_window(budget: Budget) -> None:
    spend(budget, 90)
    assert look() == 2
    with connect() as client:
        later = timezone.now() + timedelta(days=40)
        counters.keep(client, now=later)
        assert alerts.find_alerts(client, now=later) == []
        changing.adjust_budget(client, budget=budget, nano=60 * 10**9, who="t", origin="t", reason="r", now=later)
        assert [alert.threshold for alert in alerts.find_alerts(client, now=later)] == [50]


def test_it_posts_once_signed_and_writes_to_who_can_act(budget: Budget, receiver: Receiver) -> None:
    spend(budget, 60)
    look()

    def deliver(_: int) -> None:
        delivery.deliver_due()
        connection.close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(deliver, range(6)))
    assert sorted(message.to[0] for message in mail.outbox) == ["fred@acme.test", "olga@acme.test"]
    assert "60 EUR of the 100 EUR" in mail.outbox[0].body
    [(headers, body)] = receiver.taken
    sent = json.loads(body)
    assert (sent["budget"], sent["threshold"], sent["spent"], sent["amount"]) == ("monthly", 50, "60", "100")
    at, _, signed = headers["x-headrace-signature"].removeprefix("t=").partition(",v1=")
    assert signed == hmac.new(SECRET.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    assert set(Notice.objects.values_list("state", "attempts")) == {("delivered", 1)}


def test_it_tries_again_with_growing_pauses_and_gives_up(budget: Budget, receiver: Receiver) -> None:
    receiver.status = 503
    spend(budget, 60)
    look()
    now, pauses = timezone.now(), []
    for _ in range(20):
        delivery.deliver_due(now=now)
        notice = Notice.objects.get(email="")
        if notice.state != Delivery.WAITING:
            break
        assert delivery.deliver_due(now=now) == 0
        pauses.append(round((notice.next_at - now).total_seconds()))
        now = notice.next_at
    assert pauses == [10, 40, 160, 640, 2560, 10240, 40960]
    assert (notice.state, notice.attempts, notice.answer) == ("failed", 8, "status 503")
    assert len(receiver.taken) == 8


def test_it_says_why_nobody_was_there(budget: Budget, receiver: Receiver) -> None:
    WebhookEndpoint.objects.update(url="http://127.0.0.1:1/hook")
    spend(budget, 60)
    look()
    delivery.deliver_due()
    notice = Notice.objects.get(email="")
    assert (notice.state, notice.attempts) == ("waiting", 1)
    assert "ConnectError" in notice.answer


def test_it_tries_a_test_once_and_takes_one_at_a_time(budget: Budget, receiver: Receiver) -> None:
    endpoint = WebhookEndpoint.objects.get()
    Notice.objects.create(tenant=budget.tenant, endpoint=endpoint)
    with pytest.raises(IntegrityError), transaction.atomic():
        Notice.objects.create(tenant=budget.tenant, endpoint=endpoint)
    delivery.deliver_due()
    [(headers, body)] = receiver.taken
    assert json.loads(body)["type"] == "test"
    at, _, signed = headers["x-headrace-signature"].removeprefix("t=").partition(",v1=")
    assert signed == hmac.new(SECRET.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    receiver.status = 302
    Notice.objects.create(tenant=budget.tenant, endpoint=endpoint)
    delivery.deliver_due()
    assert list(Notice.objects.values_list("state", "answer")) == [
        ("failed", "status 302"),
        ("delivered", "status 200"),
    ]


def test_it_sends_nothing_inside_that_the_operators_did_not_allow(
    budget: Budget, receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_NETWORKS = []
    spend(budget, 60)
    look()
    delivery.deliver_due()
    assert Notice.objects.get(email="").answer == "not sent: 127.0.0.1 is not on the public network"
    assert receiver.taken == []


def test_it_posts_nothing_to_a_paused_endpoint_until_it_is_told_again(budget: Budget, receiver: Receiver) -> None:
    receiver.status = 503
    spend(budget, 60)
    look()
    delivery.deliver_due()
    WebhookEndpoint.objects.update(enabled=False)
    later = timezone.now() + timedelta(hours=1)
    assert delivery.deliver_due(now=later) == 0
    receiver.status = 200
    WebhookEndpoint.objects.update(enabled=True)
    assert delivery.deliver_due(now=later) == 1
    assert len(receiver.taken) == 2
    assert Notice.objects.get(email="").state == Delivery.DELIVERED


def test_it_keeps_nobody_waiting_for_an_endpoint_that_takes_nothing(budget: Budget, receiver: Receiver) -> None:
    receiver.status = 503
    other = make_tenant("globex", currency="EUR")
    spend(budget, 100)
    assert look() == 3
    Notice.objects.create(tenant=other, alert=BudgetAlert.objects.all()[0], email="carol@globex.test")
    assert delivery.deliver_due() == 8, "one of three to the endpoint, and all letters"
    assert len(receiver.taken) == 1
    waiting = Notice.objects.filter(state=Delivery.WAITING)
    assert (waiting.count(), waiting.filter(next_at__gt=timezone.now()).count()) == (3, 3)
    receiver.status = 200
    assert delivery.deliver_due(now=timezone.now() + timedelta(seconds=11)) == 3


def test_it_leaves_what_is_due_to_a_run_that_is_at_it(budget: Budget, receiver: Receiver) -> None:
    """Else those who keep connections open would take the worker's every thread."""
    spend(budget, 60)
    look()
    with delivery._alone() as is_alone, ThreadPoolExecutor(1) as threads:

        def deliver() -> int:
            tried = delivery.deliver_due()
            connection.close()
            return tried

        assert is_alone
        assert threads.submit(deliver).result(20) == 0
    assert delivery.deliver_due() == 3
