"""The models, routes and the servers behind them, as the data plane looks them up. Built whole: it is small."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engines.protocols import PROTOCOLS, Upstream
from routing.conditions import BadConditions, Conditions, conditions

log = logging.getLogger("headrace.catalog")

# The SELECTs whose rows `build` takes, by table.
SELECTS = {
    "routing_model": "SELECT name, context_window, default_max_tokens, enabled, created_at FROM routing_model",
    "routing_route": "SELECT model_id, cache_scope, unknown_fields, policy, connect_timeout, first_byte_timeout,"
    " between_events_timeout, total_timeout, ttft_target, tpot_target, queue_timeout, queue_length,"
    " ignore_eos FROM routing_route",
    "routing_target": "SELECT t.route_id, t.pool_id, t.provider_id, t.upstream_model, t.context_window,"
    " t.conditions, t.weight, t.canary, t.shadow"
    " FROM routing_target t ORDER BY t.route_id, t.position",
    "engines_pool": "SELECT name, engine, model, api_key, admin_key, orders_by_priority, modalities FROM engines_pool",
    "engines_replica": "SELECT pool_id, name, url FROM engines_replica WHERE enabled ORDER BY pool_id, name",
    "engines_provider": "SELECT name, protocol, base_url, api_key FROM engines_provider",
}

Rows = dict[str, list[tuple[Any, ...]]]


class Replica(msgspec.Struct, frozen=True):
    """One server of a target. `name` is `pool/replica`, or the provider's name."""

    name: str
    upstream: Upstream

    @property
    def key(self) -> str:
        """It and the model it is asked for: providers limit each model by itself, and one may be missing alone."""
        return f"{self.name} {self.upstream.model}"


class Target(msgspec.Struct, frozen=True):
    """Where a route leads: a pool with its replicas, or a hosted provider (one replica).

    context_window: its own, where it is smaller than the route's. Which requests it takes, and what share of them
    (matching.py): percents, or a weight beside its neighbours'. modalities: all that its model takes; empty: as its
    engines say.
    """

    name: str
    replicas: tuple[Replica, ...]
    context_window: int | None = None
    conditions: Conditions = Conditions()
    weight: int | None = None
    canary: float | None = None
    shadow: float | None = None
    modalities: tuple[str, ...] = ()

    def window(self, route: "Route") -> int:
        return min(route.context_window, self.context_window or route.context_window)


class Route(msgspec.Struct, frozen=True):
    """How a model is reached. Timeouts are seconds: connect, first byte, between events, total.

    ttft_target, tpot_target: seconds to the first byte and per token after it within which an answer counts as good;
    None: any time is. queue_timeout: seconds a request may wait for room; queue_length: how many may wait. ignore_eos:
    whether requests may ask engines to write on to max_tokens.
    """

    model: str
    created: int
    context_window: int
    default_max_tokens: int
    cache_scope: str
    unknown_fields: str
    policy: str
    connect_timeout: float
    first_byte_timeout: float
    between_events_timeout: float
    total_timeout: float
    targets: tuple[Target, ...]
    ttft_target: float | None = None
    tpot_target: float | None = None
    queue_timeout: float = 30.0
    queue_length: int = 1000
    ignore_eos: bool = False

    @property
    def draws(self) -> bool:
        """Whether shares decide where a request goes, or is copied to."""
        return any(one.weight or one.canary is not None or one.shadow is not None for one in self.targets)


class Catalog(msgspec.Struct, frozen=True):
    """Every enabled model's route by its public name."""

    routes: dict[str, Route]

    @property
    def upstreams(self) -> dict[str, Upstream]:
        """All that routes lead to, by their replicas' keys."""
        every = (replica for route in self.routes.values() for target in route.targets for replica in target.replicas)
        return {replica.key: replica.upstream for replica in every}

    @property
    def replica_names(self) -> set[str]:
        """All replicas that routes lead to."""
        return {
            replica.name for route in self.routes.values() for target in route.targets for replica in target.replicas
        }


def build(rows: Rows, unseal: Callable[[bytes], str]) -> Catalog:
    """The catalog of `rows`; `unseal` opens the secrets stored with pools and providers."""
    known = {kind: [row for row in rows[kind] if _is_known(*row[:2])] for kind in ("engines_pool", "engines_provider")}
    pools = {name: _pool(rows, name, *rest, unseal=unseal) for name, *rest in known["engines_pool"]}
    providers = {name: _provider(name, *rest, unseal=unseal) for name, *rest in known["engines_provider"]}
    targets: dict[str, list[Target]] = {}
    for model, pool, provider, upstream_model, window, *terms in rows["routing_target"]:
        if (pool or provider) not in (pools if pool else providers):
            continue
        target = _on_terms(_renamed(pools[pool] if pool else providers[provider], upstream_model, window), *terms)
        targets.setdefault(model, []).extend([target] if target else [])
    settings = {row[0]: row[1:] for row in rows["routing_route"]}
    routes: dict[str, Route] = {}
    for name, window, default, enabled, created in rows["routing_model"]:
        if enabled and name in settings:
            stamp, chosen = int(created.timestamp()), tuple(targets.get(name, ()))
            *timed, ttft, tpot, patience, length, ignore_eos = settings[name]
            fields: list[Any] = [name, stamp, window, default, *timed, chosen, ttft, tpot, patience, length, ignore_eos]
            routes[name] = Route(*fields)
    return Catalog(routes)


def _is_known(name: str, protocol: str) -> bool:
    """Whether this version speaks with it; a newer one may write what it does not, which must not end all the rest."""
    if protocol not in PROTOCOLS:
        log.error("%s speaks %s, which this version does not know: it gets nothing", name, protocol)
    return protocol in PROTOCOLS


def _pool(
    rows: Rows,
    name: str,
    engine: str,
    model: str,
    api_key: bytes | None,
    admin_key: bytes | None,
    orders_by_priority: bool = False,
    modalities: Sequence[str] = (),
    *,
    unseal: Callable[[bytes], str],
) -> Target:
    api, admin = (unseal(bytes(secret)) if secret else None for secret in (api_key, admin_key))
    protocol = PROTOCOLS[engine]
    return Target(
        name,
        tuple(
            Replica(f"{name}/{replica}", Upstream(protocol, url.rstrip("/"), model, api, admin, orders_by_priority))
            for pool, replica, url in rows["engines_replica"]
            if pool == name
        ),
        modalities=tuple(modalities),
    )


def _provider(
    name: str, protocol: str, base_url: str, api_key: bytes | None, *, unseal: Callable[[bytes], str]
) -> Target:
    secret = unseal(bytes(api_key)) if api_key else None
    # Providers are written with or without the version: `https://host/v1` and `https://host` mean the same.
    upstream = Upstream(PROTOCOLS[protocol], base_url.rstrip("/").removesuffix("/v1"), "", secret)
    return Target(name, (Replica(name, upstream),))


def _on_terms(
    target: Target,
    wants: Any = None,
    weight: int | None = None,
    canary: float | None = None,
    shadow: float | None = None,
) -> Target | None:
    """The target with its terms; None where they are of another version: who knows what it should not get."""
    try:
        found = conditions(wants or {})
    except BadConditions as error:
        log.error("the conditions of %s cannot be read, it gets nothing: %s", target.name, error)
        return None
    return msgspec.structs.replace(target, conditions=found, weight=weight, canary=canary, shadow=shadow)


def _renamed(target: Target, model: str, window: int | None) -> Target:
    """The target asking for `model` upstream, where its route says another than the pool's own."""
    if not model:
        return msgspec.structs.replace(target, context_window=window)
    replicas = tuple(
        Replica(replica.name, msgspec.structs.replace(replica.upstream, model=model)) for replica in target.replicas
    )
    return msgspec.structs.replace(target, replicas=replicas, context_window=window)
