"""Ranking the places of an operation, and the rejection of one that has none; the rule is `routing/placement.py`.

The gateway asks with what its process knows, `manage.py routes explain` with what it read: see `FleetView`.
"""

from collections.abc import Sequence

import msgspec

from headrace.gateway.errors import ApiError, no_media
from headrace.gateway.operations.chat import IGNORE_EOS
from headrace.gateway.operations.estimate import Estimator, tokenizer
from headrace.gateway.operations.operation import Operation
from headrace.gateway.state.placement_request import caps_of, sizes_of
from routing.catalog import Catalog, Replica, Route, Target
from routing.placement import Fit, Misfit, Ranking, Waits, fit, rank
from routing.selection import PlacementRequest, Selection
from tenants.keyring import Principal


class FleetView(msgspec.Struct, frozen=True):
    """What is known of the fleet. silent: keys of replicas that were silent to the tenant's requests."""

    estimator: Estimator
    selection: Selection
    breakers: Waits
    silent: frozenset[str] = frozenset()


def find_route(catalog: Catalog, principal: Principal, model: str) -> Route:
    """The route of `model`. One a key may not call looks as if it did not exist. Raises ApiError."""
    route = catalog.routes.get(model)
    if route is None or not principal.may_call(model):
        raise ApiError(
            "model_not_found", f"The model '{model}' does not exist or this key may not call it.", param="model"
        )
    return route


def check_unknown(operation: Operation, route: Route) -> None:
    """Refuse fields nobody knows, unless the route drops them, and ignore_eos, unless it allows it. Raises ApiError."""
    if not route.ignore_eos and operation.passed.pop(IGNORE_EOS, None) is not None:
        operation.unknown.append(IGNORE_EOS)
    if operation.unknown and route.unknown_fields != "drop":
        name = operation.unknown[0]
        raise ApiError("unsupported_parameter", f"Unknown or unsupported parameter: '{name}'.", param=name)


def rank_operation(
    view: FleetView,
    principal: Principal,
    operation: Operation,
    route: Route,
    want: PlacementRequest,
    *,
    tried: Sequence[Replica] = (),
    first: Target | None = None,
) -> Ranking:
    """Rank each replica that may take the operation, beginning with those of `first`. tried: replicas left out."""
    return rank(
        route,
        want,
        sizes_of(operation),
        caps_of(principal),
        view.selection,
        view.breakers,
        lambda target: view.estimator.prompt_tokens(tokenizer(target), operation),
        silent=view.silent,
        tried=tried,
        first=first,
    )


def fit_operation(
    view: FleetView, principal: Principal, operation: Operation, route: Route, target: Target
) -> Fit | Misfit:
    """Fit the operation to `target`, which has a replica."""
    prompt = view.estimator.prompt_tokens(tokenizer(target), operation)
    return fit(route, target, sizes_of(operation), caps_of(principal), view.selection, prompt)


def error_of(misfit: Misfit) -> ApiError:
    """What a client is told whose operation fits no target."""
    return ApiError(misfit.code, misfit.message, param=misfit.param)


def rejection_of(ranking: Ranking) -> ApiError:
    """What a client is told where `ranking` has no place: why the first target cannot take the operation, or when a
    replica may be asked again."""
    if not any(target.replicas for target in ranking.route.targets):
        return ApiError("no_capacity", "No replica of this model is running.", retry_after=1)
    targets, misfits = ranking.targets, ranking.misfits
    if misfits and len(misfits) == sum(bool(target.replicas) for target in targets):
        return error_of(next(iter(misfits.values())))
    if not targets:
        if kind := _unmatched_media(ranking):
            return no_media(kind)
        return ApiError("invalid_request", "No target of this model takes such a request: see its route's conditions.")
    waits = [ranking.wait(replica) for target in targets for replica in target.replicas]
    soonest = min(60.0, max(1.0, min(waits, default=1.0)))
    return ApiError("no_capacity", "No replica of this model can be asked now.", retry_after=soonest)


def _unmatched_media(ranking: Ranking) -> str | None:
    """The kind of media for which alone no target's conditions hold; None where something else is in the way too."""
    request = ranking.request

    def has_target(modalities: frozenset[str]) -> bool:
        facts = msgspec.structs.replace(request.facts, modalities=modalities)
        return bool(ranking.selection.match(ranking.route, msgspec.structs.replace(request, facts=facts)).targets)

    media = sorted(request.facts.modalities - {"text"})
    if not media or not has_target(frozenset({"text"})):
        return None
    return next((kind for kind in media if not has_target(frozenset({"text", kind}))), media[0])
