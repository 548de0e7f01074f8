"""Where a request may go: the one rule, asked by the gateway for each request and by `manage.py routes explain`.

    ranking = rank(route, request, sizes, caps, selection, breakers, prompt_of)
    ranking.places           best first
    explain(ranking)         for each other replica, and each target without one, why it is left out

`rank` reads what it is given and nothing else; of the fleet it knows what `selection` and `breakers` tell.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from routing.catalog import Replica, Route, Target
from routing.selection import Choice, PlacementRequest, Selection


class OperationSizes(msgspec.Struct, frozen=True):
    """What an operation demands of a target. max_tokens: of each of the `n` choices; None: the client named none.

    fields: the client's fields that change the answer, which an engine has to know.
    """

    n: int = 1
    max_tokens: int | None = None
    modalities: frozenset[str] = frozenset({"text"})
    fields: Mapping[str, Any] = {}
    may_fall_back: bool = True


class Caps(msgspec.Struct, frozen=True):
    """The most tokens that the caller's limits let one request have; None: any number.

    max_prompt_tokens, max_output_tokens: of a prompt, and of each choice. output_limit: the smallest limit of output
    tokens a minute, for all choices together.
    """

    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    output_limit: int | None = None


class Fit(msgspec.Struct, frozen=True):
    """An operation at one target: its prompt there, estimated, and the max_tokens of each choice."""

    prompt: int
    max_tokens: int


class Misfit(msgspec.Struct, frozen=True):
    """Why an operation does not fit a target. code, message, param: the API's error. reason: the same for operators."""

    code: str
    message: str
    param: str
    reason: str


Place = tuple[Choice, Fit]


class Waits(Protocol):
    """How long an upstream is left alone, by its replica's key: seconds, 0 where it may be asked now."""

    def wait(self, name: str, tenant: str | None = None) -> float: ...


class Ranking(msgspec.Struct, frozen=True):
    """What `rank` found. places: best first. targets: those whose conditions hold, best first. verdicts: why, by
    position in the route. misfits: by the target's `id`. The rest is what `rank` was given."""

    places: list[Place]
    targets: list[Target]
    verdicts: list[str]
    misfits: dict[int, Misfit]
    route: Route
    request: PlacementRequest
    selection: Selection
    breakers: Waits
    tried: Sequence[Replica]

    def wait(self, replica: Replica) -> float:
        """For how many seconds the replica is left alone."""
        return self.breakers.wait(replica.key, self.request.facts.tenant)


class LeftOut(msgspec.Struct, frozen=True):
    """A replica, or a whole target, that is no place for the request. position: the target's, in the route."""

    position: int
    replica: str | None
    reason: str


def rank(
    route: Route,
    request: PlacementRequest,
    sizes: OperationSizes,
    caps: Caps,
    selection: Selection,
    breakers: Waits,
    prompt_of: Callable[[Target], int],
    *,
    silent: frozenset[str] = frozenset(),
    tried: Sequence[Replica] = (),
    first: Target | None = None,
) -> Ranking:
    """Rank the replicas that may take the request, beginning with those of `first`.

    prompt_of: the prompt's tokens by a target's tokenizer. silent: keys of replicas that are passed over while there
    are others. tried: replicas that are left out.
    """
    matched = selection.match(route, request)
    targets = matched.targets if sizes.may_fall_back else matched.targets[:1]
    misfits: dict[int, Misfit] = {}
    fits: dict[int, Fit] = {}
    fitting = []
    for target in targets:
        if not target.replicas:
            continue
        found = fit(route, target, sizes, caps, selection, prompt_of(target))
        if isinstance(found, Fit):
            fits[id(target)] = found
            fitting.append(target)
        else:
            misfits[id(target)] = found
    tenant = request.facts.tenant
    # Those left alone are in no mean of the ranking either.
    left_alone = frozenset(
        each.key
        for target in fitting
        for each in target.replicas
        if each in tried or breakers.wait(each.key, tenant) > 0
    )
    choices = selection.choices_of(fitting, route, request, besides=left_alone, unless_alone=silent)
    if first is not None:
        choices.sort(key=lambda choice: choice.target != first)
    places = [(choice, fits[id(choice.target)]) for choice in choices]
    return Ranking(places, targets, matched.verdicts, misfits, route, request, selection, breakers, tried)


def explain(ranking: Ranking) -> list[LeftOut]:
    """Say of each replica that is no place of `ranking`, and of each target without a replica, why it is none."""
    placed = {(id(choice.target), choice.replica.name) for choice, _ in ranking.places}
    considered = {id(target) for target in ranking.targets}
    found = []
    for position, (target, verdict) in enumerate(zip(ranking.route.targets, ranking.verdicts, strict=True)):
        whole = _target_reason(ranking, target, verdict, is_considered=id(target) in considered)
        if whole is not None:
            names: list[str | None] = [each.name for each in target.replicas]
            found += [LeftOut(position, name, whole) for name in names or [None]]
            continue
        found += [
            LeftOut(position, each.name, _replica_reason(ranking, target, each))
            for each in target.replicas
            if (id(target), each.name) not in placed
        ]
    return found


def _target_reason(ranking: Ranking, target: Target, verdict: str, *, is_considered: bool) -> str | None:
    if not is_considered:
        is_plain = verdict.startswith("yes") or (target.canary is not None and not verdict.endswith("not drawn"))
        return "no target may stand in for the first" if is_plain else verdict.removeprefix("no: ")
    if not target.replicas:
        return "it has no replica"
    misfit = ranking.misfits.get(id(target))
    return None if misfit is None else misfit.reason


def _replica_reason(ranking: Ranking, target: Target, replica: Replica) -> str:
    if replica in ranking.tried:
        return "it was tried"
    if ranking.wait(replica) > 0:
        return "its breaker is open"
    if lacked := ranking.selection.lacked(target, replica, ranking.request.facts.modalities):
        return f"its model takes no {', '.join(sorted(lacked))}"
    if not ranking.selection.standing(replica.name)[0]:
        return f"it is {ranking.selection.state(replica.name)}"
    return "it was silent to the tenant's last requests"


def default_output(caps: Caps, route: Route, n: int) -> int:
    """The max_tokens of each of `n` choices where the client names none and the window has room: the route's, or the
    most that a smaller limit lets it ask for. Nobody is to be refused for what nobody asked for."""
    most = route.default_max_tokens
    if caps.output_limit is not None:
        most = min(most, caps.output_limit // n)
    if caps.max_output_tokens is not None:
        most = min(most, caps.max_output_tokens)
    return max(1, most)


def fit(
    route: Route, target: Target, sizes: OperationSizes, caps: Caps, selection: Selection, prompt: int
) -> Fit | Misfit:
    """Fit an operation whose prompt has about `prompt` tokens to `target`, which has a replica."""
    if lacked := selection.lacked_by_all(target, sizes.modalities):
        kind = min(lacked)
        what = kind if kind == "audio" else f"{kind}s"
        reason = f"its model takes no {', '.join(sorted(lacked))}"
        return Misfit("invalid_request", f"This model takes no {what}.", "messages", reason)
    protocol, window = target.replicas[0].upstream.protocol, target.window(route)
    refused = "n" if sizes.n > 1 and not protocol.many_choices else protocol.refused(sizes.fields)
    if refused is not None:
        message = f"The engine of this model does not support '{refused}'."
        return Misfit("unsupported_parameter", message, refused, f"its engine does not support {refused}")
    most = caps.max_prompt_tokens
    if most is not None and prompt > most:
        message = f"The prompt is about {prompt} tokens; this key may send {most}."
        return Misfit("request_too_large", message, "messages", f"the key may send {most} tokens: it has {prompt}")
    if sizes.max_tokens is None:
        # Engines refuse what does not fit, and prompts may be half as much again as they are estimated; but near the
        # end of the window what is left is rather halved than given up.
        room = max(1, window - prompt * 3 // 2, (window - prompt) // 2)
        max_tokens = min(default_output(caps, route, sizes.n), room)
    elif sizes.max_tokens >= window:
        reason = f"context window {window}: it takes {prompt + sizes.max_tokens}"
        return _too_long("max_tokens is", sizes.max_tokens, window, "max_tokens", reason)
    elif caps.max_output_tokens is not None and sizes.max_tokens > caps.max_output_tokens:
        cap = caps.max_output_tokens
        message = f"max_tokens is {sizes.max_tokens}; this key may ask for {cap}."
        reason = f"the key may ask for {cap} tokens: max_tokens is {sizes.max_tokens}"
        return Misfit("request_too_large", message, "max_tokens", reason)
    else:
        max_tokens = sizes.max_tokens
    if target.context_window is not None and (both := prompt + max_tokens) > target.context_window:
        reason = f"context window {window}: it takes {both}"
        return _too_long("The prompt and max_tokens are about", both, target.context_window, "messages", reason)
    return Fit(prompt, max_tokens)


def _too_long(what: str, tokens: int, window: int, param: str, reason: str) -> Misfit:
    message = f"{what} {tokens}; the model's context window is {window} tokens."
    return Misfit("context_length_exceeded", message, param, reason)
