"""A key that is revoked, expires, or whose tenant is suspended: refused within a second; what runs finishes."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

from django.utils import timezone

from headrace.gateway.tests.calling import Answer, Place
from headrace_dev.testing.invariants import eventually
from headrace_dev.testing.upstream import prompt
from tenants.models import ApiKey, Project, Tenant


def seconds_until(expected: int, ask: Callable[[], Answer]) -> float:
    began = time.monotonic()
    while ask().status != expected:
        assert time.monotonic() - began < 5
        time.sleep(0.02)
    return time.monotonic() - began


def test_it_obeys_within_a_second_and_lets_a_running_stream_finish(place: Place) -> None:
    key, secret = place.world.add_key()
    globex = place.world.add_tenant("globex")
    _, other = place.world.add_key(Project.objects.create(tenant=globex, slug="app", name="App"))
    place.wait_known(secret=secret)
    place.wait_known(secret=other)
    slow = prompt(tokens=40, interval_ms=60)
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(partial(place.chat, slow, secret=each, stream=True)) for each in (secret, other)]
        eventually(lambda: place.upstream.stats()["open"] == 2)
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
        assert seconds_until(401, lambda: place.chat(secret=secret)) < 2  # one second, and a busy machine's
        Tenant.objects.filter(pk=globex.pk).update(suspended_at=timezone.now())
        assert seconds_until(401, lambda: place.chat(secret=other)) < 2
        answers = [answer.result() for answer in running]
    for answer in answers:
        assert answer.is_done
        assert (answer.text.count("tok"), answer.record["status"], answer.record["output_tokens"]) == (40, "ok", 40)
    Tenant.objects.filter(pk=globex.pk).update(suspended_at=None)
    assert seconds_until(200, lambda: place.chat(secret=other)) < 2


def test_it_ends_with_its_expiry_without_being_told(place: Place) -> None:
    expires = timezone.now() + timedelta(seconds=2)
    _, secret = place.world.add_key(expires_at=expires)
    place.wait_known(secret=secret)
    assert place.chat(secret=secret).status == 200
    time.sleep(max(0.0, (expires - timezone.now()).total_seconds()))
    assert place.chat(secret=secret).status == 401


def test_it_forgets_a_key_that_is_deleted(place: Place) -> None:
    key, secret = place.world.add_key()
    place.wait_known(secret=secret)
    ApiKey.objects.filter(pk=key.pk).delete()
    assert seconds_until(401, lambda: place.chat(secret=secret)) < 2


def test_it_takes_the_new_models_and_limits_of_a_key(place: Place) -> None:
    key, secret = place.world.add_key()
    place.wait_known(secret=secret)
    ApiKey.objects.filter(pk=key.pk).update(models=["another"])
    assert seconds_until(404, lambda: place.chat(secret=secret)) < 2
    ApiKey.objects.filter(pk=key.pk).update(models=[], max_output_tokens=5)
    assert seconds_until(400, lambda: place.chat(secret=secret, max_tokens=6)) < 2
    ApiKey.objects.filter(pk=key.pk).update(max_output_tokens=None)
    Project.objects.filter(pk=place.world.project.pk).update(max_output_tokens=4)
    assert seconds_until(400, lambda: place.chat(secret=secret, max_tokens=5)) < 2
    Project.objects.filter(pk=place.world.project.pk).update(max_output_tokens=None)
    assert seconds_until(200, lambda: place.chat(secret=secret, max_tokens=5)) < 2


def test_it_keeps_tenants_prefix_caches_apart(place: Place) -> None:
    """The engine's cache is salted by tenant; a route may say that its tenants share it."""
    shared = place.add_model(cache_scope="shared")
    globex = place.world.add_tenant("carol")
    _, carol = place.world.add_key(Project.objects.create(tenant=globex, slug="app", name="App"))
    place.wait_known(shared, secret=carol)
    text = "A long prompt that both of them send. " * 20

    def cached(secret: str | None, model: str) -> int:
        tokens: int = place.chat(text, secret=secret, model=model).record["cached_input_tokens"]
        return tokens

    mine = place.world.model
    assert cached(None, mine) == 0
    assert cached(None, mine) > 100
    assert cached(carol, mine) == 0
    assert cached(carol, mine) > 100
    assert cached(None, shared) == 0
    assert cached(carol, shared) > 100
