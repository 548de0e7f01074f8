"""The feed of configuration changes: complete, in the order of commits, and silent about what changes nothing."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction

from engines.models import Pool, Provider, Replica
from headrace.models import ConfigChange
from routing.models import Model, Route, Target
from tenants.models import ApiKey, Tenant
from tenants.tenants import suspend_tenant
from tenants.tests.cast import make_key, make_project, make_tenant, sql


def feed() -> list[tuple[str, str]]:
    return list(ConfigChange.objects.order_by("id").values_list("table_name", "ref"))


@pytest.mark.django_db
def test_it_names_every_configuration_row_by_its_key() -> None:
    tenant = make_tenant()
    project = make_project(tenant)
    key = make_key(project)
    pool = Pool.objects.create(name="p", model="m")
    replica = Replica.objects.create(pool=pool, name="r", url="http://x")
    Provider.objects.create(name="h", base_url="https://x")
    route = Route.objects.create(model=Model.objects.create(name="org/m", context_window=5, default_max_tokens=5))
    target = Target.objects.create(route=route, position=0, pool=pool)
    suspend_tenant(tenant=tenant)
    rows = [
        ("tenants_tenant", "acme"), ("tenants_project", str(project.pk)), ("tenants_apikey", key.public_id),
        ("engines_pool", "p"), ("engines_replica", str(replica.pk)), ("engines_provider", "h"),
        ("routing_model", "org/m"), ("routing_route", "org/m"), ("routing_target", str(target.pk)),
        ("tenants_tenant", "acme"),
    ]  # fmt: skip
    assert feed() == rows
    target_ref = str(target.pk)
    target.delete()
    assert feed() == [*rows, ("routing_target", target_ref)]


@pytest.mark.django_db
def test_it_is_silent_when_nothing_changes() -> None:
    tenant = make_tenant()
    key = make_key(make_project(tenant))
    before = feed()
    tenant.save()
    key.save()
    sql("UPDATE tenants_apikey SET last_used_at = now()")
    ApiKey.objects.filter(name="nobody").delete()
    assert feed() == before


@pytest.mark.django_db(transaction=True)
def test_it_shows_a_lower_id_never_after_a_higher_one() -> None:
    """The first writer draws its number and waits; the second must not become visible before it."""
    make_tenant("acme")
    make_tenant("globex")
    written, release = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            Tenant.objects.filter(slug="acme").update(name="first")
            written.set()
            release.wait(30)

    def second() -> None:
        written.wait(30)
        Tenant.objects.filter(slug="globex").update(name="second")

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(_closing(work)) for work in (first, second)]
        written.wait(30)
        last = ConfigChange.objects.order_by("-id").values_list("id", flat=True)[0]
        assert not futures[1].done()
        release.set()
        for future in futures:
            future.result(30)
    assert [ref for _, ref in feed()[2:]] == ["acme", "globex"]
    assert list(ConfigChange.objects.filter(id__gt=last).order_by("id").values_list("ref", flat=True)) == [
        "acme",
        "globex",
    ]


@pytest.mark.django_db(transaction=True)
def test_it_misses_no_change_and_never_deadlocks_while_many_write() -> None:
    """A reader that asks for ids above the last it saw, as every process does, hears of every write."""
    slugs = [make_tenant(f"t{number}").slug for number in range(4)]
    stop, seen = threading.Event(), []

    def read() -> None:
        last = 0
        while True:
            stopping = stop.is_set()
            for row in ConfigChange.objects.filter(id__gt=last).order_by("id").values_list("id", "ref"):
                last, ref = row
                seen.append(ref)
            if stopping:
                return

    def write(turn: int) -> None:
        for number in range(25):
            with transaction.atomic():
                for slug in slugs[turn:] + slugs[:turn]:  # each in another order
                    Tenant.objects.filter(slug=slug).update(concurrency=1 + turn * 100 + number)

    with ThreadPoolExecutor(5) as pool:
        reading = pool.submit(_closing(read))
        try:
            writing = [pool.submit(_closing(partial(write, turn))) for turn in range(4)]
            for future in writing:
                future.result(60)
        finally:
            stop.set()
        reading.result(60)
    assert len(seen) == len(feed()) == 4 + 4 * 25 * 4


def _closing(work: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    return run
