"""What is offered: pools, a hosted provider, models with their routes, and prices."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db import transaction

from billing.models import Price
from engines.models import Pool, Provider, Replica
from headrace_dev.bench.ledger.seeding.size import Size
from routing.models import Model, Route, Target

MODELS = tuple(f"model-{number}" for number in range(8))
POOLS = tuple(f"pool-{number}" for number in range(4))
PROVIDER = "hosted"
REPLICAS = 4  # of each pool
GPU_HOUR = Decimal("2.50")


class Places(NamedTuple):
    """Where a model is served: its own pool, and whoever takes what that has no room for."""

    usual: str
    other: str


def places_of(model: str) -> Places:
    number = MODELS.index(model)
    pool = POOLS[number % len(POOLS)]
    return Places(pool, PROVIDER if number % 2 else POOLS[(number + 1) % len(POOLS)])


def make(size: Size, currencies: tuple[str, ...], own_prices: list[tuple[str, str]]) -> None:
    """`own_prices`: tenants, with their currencies, that pay less for the first model."""
    with transaction.atomic():
        pools = Pool.objects.bulk_create(
            Pool(name=name, model=f"served-by-{name}", gpu_hour_cost=GPU_HOUR, cost_currency="EUR") for name in POOLS
        )
        Replica.objects.bulk_create(
            Replica(pool=pool, name=f"r{number}", url=f"http://{pool.name}-r{number}.invalid:30000", enabled=False)
            for pool in pools
            for number in range(REPLICAS)
        )
        Provider.objects.create(name=PROVIDER, base_url="https://hosted.invalid/v1")
        for name in MODELS:
            _model(name)
        since = size.start - timedelta(days=1)
        for number, model in enumerate(MODELS):
            scopes = [("", "", currency, Decimal(number + 2) / 10) for currency in currencies]
            scopes += [(PROVIDER, "", currency, Decimal(number + 3) / 10) for currency in currencies]
            if model == MODELS[0]:
                scopes += [("", tenant, currency, Decimal("0.15")) for tenant, currency in own_prices]
            Price.objects.bulk_create(_price(model, place, scope, since) for place, scope in enumerate(scopes, start=1))


def _model(name: str) -> None:
    model = Model.objects.create(name=name, context_window=131_072)
    route = Route.objects.create(model=model)
    for position, place in enumerate(places_of(name)):
        is_pool = place != PROVIDER
        Target.objects.create(
            route=route,
            position=position,
            pool_id=place if is_pool else None,
            provider_id=None if is_pool else place,
            upstream_model="" if is_pool else name,
        )


def _price(model: str, place: int, scope: tuple[str, str, str, Decimal], since: datetime) -> Price:
    target, tenant, currency, rate = scope
    return Price(
        version=f"{model}@{place}",
        model=model,
        target=target,
        tenant=tenant,
        currency=currency,
        input=rate,
        cached_input=rate / 10,
        output=rate * 4,
        effective_from=since,
    )
