"""Dead letters: kept once, replayed once it can work."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection

from billing import dead_letters, drain
from billing.models import DeadLetter, UsageRecord
from billing.tests.stream import append, connect, is_empty, usage_event

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
