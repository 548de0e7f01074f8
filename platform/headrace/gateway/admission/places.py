"""Where an operation may go: the route's replicas in order, without those that are left alone or cannot take it."""

from collections.abc import Iterator, Sequence

import msgspec

from headrace.gateway.errors import ApiError, no_media
from headrace.gateway.operations.chat import IGNORE_EOS
from headrace.gateway.operations.estimate import tokenizer
from headrace.gateway.operations.operation import Operation
from headrace.gateway.state.fit import Fit, Place, default_output
from headrace.gateway.web_process import Gateway
from routing.catalog import Replica, Route, Target
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


def first_places(gateway: Gateway, principal: Principal, operation: Operation, route: Route) -> list[Place]:
    """Where the operation may go first, best first; at least one.

    Raises ApiError: why the first target cannot take it, or when one may be asked again. A target that cannot take it
    is passed over.
    """
    if not any(target.replicas for target in route.targets):
        raise ApiError("no_capacity", "No replica of this model is running.", retry_after=1)
    refusals: list[ApiError] = []
    wanted = next(target for target in route.targets if target.replicas)
    prompt = gateway.estimator.prompt_tokens(tokenizer(wanted), operation)
    want = gateway.placement.want(route, operation, principal, prompt)
    if found := list(places(gateway, principal, operation, route, want, refusals=refusals)):
        return found
    targets = _targets(gateway, operation, route, want)
    if refusals and len(refusals) == sum(bool(target.replicas) for target in targets):
        raise refusals[0]
    if not targets:
        if kind := _unmatched_media(gateway, operation, route, want):
            raise no_media(kind)
        raise ApiError("invalid_request", "No target of this model takes such a request: see its route's conditions.")
    waits = [gateway.breakers.wait(replica.key, principal.tenant) for target in targets for replica in target.replicas]
    soonest = min(60.0, max(1.0, min(waits, default=1.0)))
    raise ApiError("no_capacity", "No replica of this model can be asked now.", retry_after=soonest)


def places(
    gateway: Gateway,
    principal: Principal,
    operation: Operation,
    route: Route,
    want: PlacementRequest,
    *,
    refusals: list[ApiError],
    tried: Sequence[Replica] = (),
    first: Target | None = None,
) -> Iterator[Place]:
    """Each replica that may take the operation, best first, beginning with those of `first`.

    refusals: gets what each target that cannot take the operation would have it refused with. tried: replicas left out.
    """
    every = (
        (target, _fit_or(gateway, principal, operation, route, target, refusals))
        for target in _targets(gateway, operation, route, want)
    )
    fits = {id(target): (target, fit) for target, fit in every if fit is not None}
    targets, tenant = [target for target, _ in fits.values()], principal.tenant
    # Those left alone are in no mean of the ranking either.
    besides = frozenset(
        each.key
        for target in targets
        for each in target.replicas
        if each in tried or gateway.breakers.wait(each.key, tenant) > 0
    )
    choices = gateway.placement.selection.choices_of(
        targets, route, want, besides=besides, unless_alone=gateway.silences.of(tenant)
    )
    for choice in sorted(choices, key=lambda choice: choice.target != first) if first else choices:
        yield choice, fits[id(choice.target)][1]


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
    targets = sorted(_targets(gateway, operation, route, want), key=lambda target: target.name != first.name)
    fits = ((target, _fit_or(gateway, principal, operation, route, target, [])) for target in targets)
    return [(target, fit) for target, fit in fits if fit]


def _targets(gateway: Gateway, operation: Operation, route: Route, want: PlacementRequest) -> list[Target]:
    """Those whose conditions hold, best first; the first alone where none may stand in for it."""
    targets = gateway.placement.selection.match(route, want).targets
    return targets if operation.fallback else targets[:1]


def _unmatched_media(gateway: Gateway, operation: Operation, route: Route, want: PlacementRequest) -> str | None:
    """The kind of media for which alone no target's conditions hold; None where something else is in the way too."""

    def has_target(modalities: frozenset[str]) -> bool:
        facts = msgspec.structs.replace(want.facts, modalities=modalities)
        return bool(_targets(gateway, operation, route, msgspec.structs.replace(want, facts=facts)))

    media = sorted(want.facts.modalities - {"text"})
    if not media or not has_target(frozenset({"text"})):
        return None
    return next((kind for kind in media if not has_target(frozenset({"text", kind}))), media[0])


def _fit_or(
    gateway: Gateway,
    principal: Principal,
    operation: Operation,
    route: Route,
    target: Target,
    refusals: list[ApiError],
) -> Fit | None:
    try:
        return fitting(gateway, principal, operation, route, target) if target.replicas else None
    except ApiError as refusal:
        refusals.append(refusal)
        return None


def check_unknown(operation: Operation, route: Route) -> None:
    """Refuse fields nobody knows, unless the route drops them, and ignore_eos, unless it allows it. Raises ApiError."""
    if not route.ignore_eos and operation.passed.pop(IGNORE_EOS, None) is not None:
        operation.unknown.append(IGNORE_EOS)
    if operation.unknown and route.unknown_fields != "drop":
        name = operation.unknown[0]
        raise ApiError("unsupported_parameter", f"Unknown or unsupported parameter: '{name}'.", param=name)


def fitting(gateway: Gateway, principal: Principal, operation: Operation, route: Route, target: Target) -> Fit:
    """How the operation fits `target`, which has a replica. Raises ApiError with the reason why it does not."""
    if lacked := gateway.placement.selection.lacked_by_all(target, operation.modalities):
        raise no_media(min(lacked))
    upstream = target.replicas[0].upstream
    refused = (
        "n" if operation.n > 1 and not upstream.protocol.many_choices else upstream.protocol.refused(operation.decisive)
    )
    if refused is not None:
        raise ApiError(
            "unsupported_parameter", f"The engine of this model does not support '{refused}'.", param=refused
        )
    prompt = gateway.estimator.prompt_tokens(tokenizer(target), operation)
    default = default_output(principal, route, operation.n)
    max_tokens = _output_bound(operation, principal, prompt, window=target.window(route), default=default)
    if target.context_window is not None and prompt + max_tokens > target.context_window:
        raise _too_long("The prompt and max_tokens are about", prompt + max_tokens, target.context_window, "messages")
    return Fit(prompt, max_tokens)


def _output_bound(operation: Operation, principal: Principal, prompt: int, *, window: int, default: int) -> int:
    """The max_tokens of each choice: the request's, else `default`, bounded by the window."""
    if principal.max_prompt_tokens is not None and prompt > principal.max_prompt_tokens:
        raise ApiError(
            "request_too_large",
            f"The prompt is about {prompt} tokens; this key may send {principal.max_prompt_tokens}.",
            param="messages",
        )
    if operation.max_tokens is None:
        # Engines refuse what does not fit, and prompts may be half as much again as they are estimated; but near the
        # end of the window what is left is rather halved than given up.
        room = max(1, window - prompt * 3 // 2, (window - prompt) // 2)
        return min(default, room)
    if operation.max_tokens >= window:
        raise _too_long("max_tokens is", operation.max_tokens, window, "max_tokens")
    cap = principal.max_output_tokens
    if cap is not None and operation.max_tokens > cap:
        raise ApiError(
            "request_too_large",
            f"max_tokens is {operation.max_tokens}; this key may ask for {cap}.",
            param="max_tokens",
        )
    return operation.max_tokens


def _too_long(what: str, tokens: int, window: int, param: str) -> ApiError:
    return ApiError(
        "context_length_exceeded", f"{what} {tokens}; the model's context window is {window} tokens.", param=param
    )
