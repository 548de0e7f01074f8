"""What must hold of pools, providers, models and targets, on validation and in the database."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, models, transaction

from engines.models import Pool, Provider, Replica
from routing.models import Model, Route, Target

pytestmark = pytest.mark.django_db


def refused_twice(row: models.Model) -> None:
    with pytest.raises(ValidationError):
        row.full_clean()
    with pytest.raises(DatabaseError), transaction.atomic():
        row.save(force_insert=True)


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "ftp://x", "file:///etc/passwd", "http://", "http://u:p@x", "http://x?a=b", "http://x#f", "http://x y",
        "http://x\n", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_it_refuses_an_address_that_is_not_plain_http(url: str) -> None:
    pool = Pool.objects.create(name="p", model="m")
    refused_twice(Replica(pool=pool, name="r", url=url))
    refused_twice(Provider(name="h", base_url=url))


@pytest.mark.parametrize("url", ["http://127.0.0.1:30000", "https://gpu-1.internal/sglang", "http://[::1]:8000"])
def test_it_takes_an_engines_address(url: str) -> None:
    replica = Replica(pool=Pool.objects.create(name="p", model="m"), name="r", url=url)
    replica.full_clean()
    replica.save()


@pytest.mark.parametrize("url", ["http://127.0.0.1:30000/v1", "https://gpu-1.internal/sglang/v1/"])
def test_it_takes_a_version_in_a_providers_address_and_refuses_it_in_an_engines(url: str) -> None:
    Provider(name="h", base_url=url).full_clean()
    with pytest.raises(ValidationError, match="the server's root, without /v1"):
        Replica(pool=Pool.objects.create(name="p", model="m"), name="r", url=url).full_clean()


@pytest.mark.parametrize(
    "fields", [{"name": "A"}, {"engine": "x"}, {"gpu_hour_cost": -1}, {"gpus_per_replica": -1}], ids=str
)
def test_it_refuses_a_bad_pool(fields: dict[str, Any]) -> None:
    refused_twice(Pool(**{"name": "p", "model": "m"} | fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""}, {"name": "a b"}, {"name": "a\n"}, {"name": "ü"}, {"name": "x" * 201}, {"context_window": 0},
        {"context_window": 10**9 + 1}, {"default_max_tokens": 0}, {"default_max_tokens": 9},
    ],
    ids=str,
)  # fmt: skip
def test_it_refuses_a_bad_model(fields: dict[str, Any]) -> None:
    refused_twice(Model(**{"name": "m", "context_window": 8, "default_max_tokens": 8} | fields))


@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["connect_timeout", "first_byte_timeout", "between_events_timeout", "total_timeout"])
def test_it_refuses_a_bad_timeout(field: str, seconds: float) -> None:
    model = Model.objects.create(name="m", context_window=8, default_max_tokens=8)
    route = Route(model=model, **{field: seconds})
    with pytest.raises(DatabaseError), transaction.atomic():
        route.save(force_insert=True)
    if seconds == seconds:
        with pytest.raises(ValidationError):
            route.full_clean()


def test_it_refuses_a_target_of_both_kinds_or_none() -> None:
    route = Route.objects.create(model=Model.objects.create(name="m", context_window=8, default_max_tokens=8))
    pool = Pool.objects.create(name="p", model="m")
    provider = Provider.objects.create(name="h", base_url="https://x")
    refused_twice(Target(route=route, position=0))
    refused_twice(Target(route=route, position=0, pool=pool, provider=provider, upstream_model="m"))
    refused_twice(Target(route=route, position=0, provider=provider))
    assert Target(route=route, position=0, pool=pool).slug == "p"


def test_it_keeps_a_pool_that_a_route_leads_to() -> None:
    route = Route.objects.create(model=Model.objects.create(name="m", context_window=8, default_max_tokens=8))
    pool = Pool.objects.create(name="p", model="m")
    Target.objects.create(route=route, position=0, pool=pool)
    with pytest.raises(models.ProtectedError):
        pool.delete()
