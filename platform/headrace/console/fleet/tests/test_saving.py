"""What is asked before a pool or a provider is saved."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from engines.models import Pool, Provider, Replica
from headrace.apply.tests.documents import apply
from headrace_core import sealing
from headrace_dev.testing.questions import say_yes, words

pytestmark = pytest.mark.django_db
DOCUMENT = """
pools:
  h100: {engine: sglang, model: demo, gpu_hour_cost: 2.5, cost_currency: EUR, replicas: ["http://127.0.0.1:9"]}
providers:
  hosted: {base_url: "http://127.0.0.1:9/v1", api_key: sk-first}
models:
  demo: {context_window: 4096, route: {targets: [h100]}}
  chat: {context_window: 4096, route: {targets: [h100]}}
"""
POOL, PROVIDER = (reverse(f"admin:engines_{kind}_change", args=[name]) for kind, name in
                  (("pool", "h100"), ("provider", "hosted")))  # fmt: skip


@pytest.fixture
def olga() -> Client:
    apply(DOCUMENT)
    client = Client()
    client.force_login(User.objects.create_superuser("olga"))
    return client


def pool_form(**changed: str) -> dict[str, str]:
    """Of the one replica, which is switched off."""
    form = form_of([Replica.objects.get()])
    del form["replicas-0-enabled"]
    return form | changed


def form_of(replicas: list[Replica]) -> dict[str, str]:
    form = {"engine": "sglang", "model": "demo", "gpu_hour_cost": "2.5", "cost_currency": "EUR"}
    form |= {"gpus_per_replica": "1"} | {f"replicas-{kind}_FORMS": str(len(replicas)) for kind in ("TOTAL", "INITIAL")}
    for number, each in enumerate(replicas):
        row = {"id": str(each.pk), "pool": "h100", "name": each.name, "url": each.url, "enabled": "on"}
        form |= {f"replicas-{number}-{name}": value for name, value in row.items()}
    return form


def many(count: int) -> dict[str, str]:
    """The form of a pool of so many replicas, as they are."""
    Replica.objects.all().delete()
    names = {f"r{number:03}": f"http://127.0.0.1:{number + 1}" for number in range(count)}
    return form_of(Replica.objects.bulk_create(Replica(pool_id="h100", name=n, url=names[n]) for n in names))


def test_it_says_which_models_a_pool_without_a_replica_leaves_without(olga: Client) -> None:
    asking = olga.post(POOL, pool_form())
    shown = words(asking)
    assert "It leaves no replica that is on: within a second the pool takes no new request." in shown
    assert "It is a target of chat, demo." in shown
    assert "http://127.0.0.1:9 http://127.0.0.1:9, off" in shown
    assert "What its replicas cost" not in shown
    assert Replica.objects.get().enabled
    say_yes(olga, POOL, asking)
    assert not Replica.objects.get().enabled


def test_it_says_since_when_another_cost_counts(olga: Client) -> None:
    asking = olga.post(POOL, pool_form(gpu_hour_cost="3", **{"replicas-0-enabled": "on"}))
    assert "by this from now on; what is counted stays. What changes Now Then Cost of a GPU hour 2.50 EUR 3.00 EUR" in (
        words(asking)
    )
    say_yes(olga, POOL, asking)
    assert Pool.objects.get().gpu_hour_cost == 3


def test_it_asks_nothing_where_nothing_changes_or_nothing_leads_to_it_yet(olga: Client) -> None:
    assert olga.post(POOL, pool_form(**{"replicas-0-enabled": "on"})).status_code == 302
    form = pool_form() | {"name": "new", "replicas-TOTAL_FORMS": "0", "replicas-INITIAL_FORMS": "0"}
    assert olga.post(reverse("admin:engines_pool_add"), form).status_code == 302


def test_it_says_that_a_provider_gets_the_key_and_shows_none(olga: Client) -> None:
    form = {"protocol": "openai", "base_url": "http://127.0.0.1:8/v1", "new_api_key": "sk-second"}
    asking = olga.post(PROVIDER, form)
    shown = words(asking)
    assert "New requests, and the API key with them, are sent to this address within a second." in shown
    assert "It is a target of no model." in shown
    assert "Base URL http://127.0.0.1:9/v1 http://127.0.0.1:8/v1 API key stored (" in shown
    assert "sk-first" not in asking.content.decode()
    assert sealing.open(Provider.objects.get().api_key or b"") == "sk-first"
    say_yes(olga, PROVIDER, asking)
    assert sealing.open(Provider.objects.get().api_key or b"") == "sk-second"


def test_it_takes_a_pool_of_hundreds_of_replicas(olga: Client) -> None:
    asking = olga.post(POOL, many(300) | {"replicas-299-url": "http://127.0.0.1:999"})
    assert "Replica r299 http://127.0.0.1:300 http://127.0.0.1:999" in words(asking)
    say_yes(olga, POOL, asking)
    assert Replica.objects.get(name="r299").url == "http://127.0.0.1:999"


def test_it_says_that_two_replicas_cannot_change_names_at_once(olga: Client) -> None:
    answer = olga.post(POOL, many(2) | {"replicas-0-name": "r001", "replicas-1-name": "r000"})
    assert answer.status_code == 200
    assert b"Another replica of this pool still has this name" in answer.content
