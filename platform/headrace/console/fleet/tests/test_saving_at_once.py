"""Two operators at once: a yes waits for who saves first, and holds only for what was shown."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from engines.models import Provider
from headrace_dev.testing.questions import said_again, words
from tenants.tests.cast import sql

PAGE = reverse("admin:engines_provider_change", args=["hosted"])
THEIRS = "http://127.0.0.1:7/v1"


def yes_while(other: Callable[[], Any]) -> Any:
    """What a yes is answered that is said while somebody else, who was first, does `other`."""
    Provider.objects.create(name="hosted", base_url="http://127.0.0.1:9/v1")
    olga = Client()
    olga.force_login(User.objects.create_superuser("olga"))
    asking = olga.post(PAGE, {"protocol": "openai", "base_url": "http://127.0.0.1:8/v1"})
    said = dict(said_again(asking))

    def say() -> Any:
        try:
            return olga.post(PAGE, said)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            other()
            answer = pool.submit(say)
            while not sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                assert not answer.done()
                threading.Event().wait(0.02)
        return answer.result(30)


@pytest.mark.django_db(transaction=True)
def test_it_asks_again_who_was_a_moment_later() -> None:
    again = yes_while(lambda: Provider.objects.update(base_url=THEIRS))
    assert "It was changed by somebody else while you were asked" in words(again)
    assert f"Base URL {THEIRS} http://127.0.0.1:8/v1" in words(again)
    assert Provider.objects.get().base_url == THEIRS


@pytest.mark.django_db(transaction=True)
def test_it_does_not_make_anew_what_was_deleted_a_moment_ago() -> None:
    assert yes_while(lambda: Provider.objects.all().delete()).status_code == 404
    assert not Provider.objects.exists()
