"""Dead letters: kept once, replayed once it can work."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection

from billing import dead_letters, drain
from billing.budgets import counters as budgets
from billing.models import Budget, DeadLetter, UsageRecord
from billing.tests.stream import append, connect, is_empty, usage_event
from tenants.meters import counters
from tenants.models import Tenant

pytestmark = pytest.mark.django_db


def test_it_replays_a_letter_when_what_was_missing_is_there() -> None:
    event = usage_event(datetime(2020, 1, 1, tzinfo=UTC))
    with connect() as client:
        append(client, event)
        drain.drain_all(client)
        letter = DeadLetter.objects.get()
        assert json.loads(letter.event) == event
        with connection.cursor() as cursor:
            cursor.execute("SELECT headrace_usage_partition('2020-01-01')")
        assert dead_letters.replay(client, [letter, letter]) == 2
        assert drain.drain_all(client) == 1
        assert is_empty(client)
    letter.refresh_from_db()
    assert letter.replayed_at is not None
    assert UsageRecord.objects.count() == 1


def test_it_keeps_a_letter_of_the_same_entry_once() -> None:
    assert dead_letters.bury([("1-0", b"x", "bad"), ("1-0", b"x", "bad")]) == 2
    assert DeadLetter.objects.count() == 1


def test_its_cost_is_in_budgets_again_though_their_counters_were_made_anew_meanwhile() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme", currency="EUR")
    budget = Budget.objects.create(tenant=tenant, name="ever", amount=100, period="total")
    event = usage_event(datetime(2020, 1, 1, tzinfo=UTC))
    with connect() as client:
        append(client, event)
        drain.drain_all(client)
        budgets.keep(client)
        [part] = budgets.current([budget], datetime.now(UTC))
        assert [counter.spent for counter in counters.read(client, [part.key]) if counter] == [0]
        with connection.cursor() as cursor:
            cursor.execute("SELECT headrace_usage_partition('2020-01-01')")
        dead_letters.replay(client, DeadLetter.objects.all())
        budgets.keep(client)
        assert [counter.spent for counter in counters.read(client, [part.key]) if counter] == [event["cost_nano"]]
