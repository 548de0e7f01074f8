"""Where an operation may go, by what this process knows: the route's replicas in order (ranking.py)."""

from collections.abc import Sequence

from headrace.gateway.admission.ranking import FleetView, error_of, fit_operation, rank_operation, rejection_of
from headrace.gateway.errors import ApiError
from headrace.gateway.operations.operation import Operation
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica, Route, Target
from routing.placement import Fit, Misfit, Place
from routing.selection import PlacementRequest
from tenants.keyring import Principal

FALLBACK = b"x-headrace-fallback"
# Who waits prefers so many, the best ranked (PREFERRED in tenants/meters/lua/rooms.lua); it may take any other too.
PREFERRED = 4


def fallback_of(wished: str) -> bool:
    """Whether a request's client lets others answer than the first of its targets. Raises ApiError."""
    if wished not in {"", "on", "off"}:
        raise ApiError("invalid_request", f"{FALLBACK.decode()} is on or off.")
    return wished != "off"


def view_of(gateway: Gateway, principal: Principal) -> FleetView:
    """What this process knows of the fleet, for a request of the principal's tenant."""
    silent = gateway.silences.of(principal.tenant)
    return FleetView(gateway.estimator, gateway.placement.selection, gateway.breakers, silent)


def first_places(gateway: Gateway, principal: Principal, operation: Operation, route: Route) -> list[Place]:
    """Where the operation may go first, best first; at least one.

    Raises ApiError: why the first target cannot take it, or when one may be asked again. A target that cannot take it
    is passed over.
    """
    want = gateway.placement.want(route, operation, principal)
    ranking = rank_operation(view_of(gateway, principal), principal, operation, route, want)
    if not ranking.places:
        raise rejection_of(ranking)
    return ranking.places


def places(
    gateway: Gateway,
    principal: Principal,
    operation: Operation,
    route: Route,
    want: PlacementRequest,
    *,
    tried: Sequence[Replica] = (),
    first: Target | None = None,
) -> list[Place]:
    """Each replica that may take the operation, best first, beginning with those of `first`. tried: left out."""
    view = view_of(gateway, principal)
    return rank_operation(view, principal, operation, route, want, tried=tried, first=first).places


def barred(gateway: Gateway, principal: Principal, found: list[Place]) -> list[str]:
    """The names of replicas that a request which may go to `found` is not offered while it waits, though they may have
    room: silent ones, and those whose model does not take its media."""
    silent, media = gateway.silences.of(principal.tenant), found[0][0].want.facts.modalities if found else frozenset()
    if not silent and len(media) < 2:
        return []
    places = {choice.replica.key for choice, _ in found}
    return [
        each.name
        for target in {choice.target.name: choice.target for choice, _ in found}.values()
        for each in target.replicas
        if each.key not in places and (each.key in silent or gateway.placement.selection.lacked(target, each, media))
    ]


def open_targets(
    gateway: Gateway, principal: Principal, operation: Operation, route: Route, want: PlacementRequest, *, first: Target
) -> list[tuple[Target, Fit]]:
    """The targets that may take the operation, by its size, and how it fits there; best first, but `first` first."""
    view = view_of(gateway, principal)
    targets = gateway.placement.selection.match(route, want).targets
    ordered = sorted(targets if operation.fallback else targets[:1], key=lambda target: target.name != first.name)
    fits = ((target, fit_operation(view, principal, operation, route, target)) for target in ordered if target.replicas)
    return [(target, found) for target, found in fits if isinstance(found, Fit)]


def fitting(gateway: Gateway, principal: Principal, operation: Operation, route: Route, target: Target) -> Fit:
    """How the operation fits `target`, which has a replica. Raises ApiError with the reason why it does not."""
    found = fit_operation(view_of(gateway, principal), principal, operation, route, target)
    if isinstance(found, Misfit):
        raise error_of(found)
    return found
