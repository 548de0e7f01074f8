"""What the gateway's rule finds for one operation, as rows for people: the ranking, and why the rest is left out."""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.gateway.admission.ranking import FleetView, rank_operation, rejection_of
from headrace.gateway.errors import ApiError
from headrace.gateway.operations.operation import Operation
from routing.breaker import FIRST_PAUSE, OPEN
from routing.catalog import Route, Target
from routing.placement import Place, Ranking
from routing.placement import explain as explain_ranking
from routing.policies import POLICIES, Policy, PrefixAware, Weights
from routing.selection import PlacementRequest, Selection
from tenants.keyring import Principal

# Without its one in a hundred that explores: what is explained is the rule.
STEADY_POLICIES: Mapping[str, Policy] = {**POLICIES, PrefixAware.name: PrefixAware(Weights(explore=0))}
_BREAKERS = ("closed", "trying", "open")


class BreakerStates:
    """Breakers as the web processes tell of them: states by replica or provider, the worst of its models."""

    def __init__(self, states: Mapping[str, int]) -> None:
        self._states = states

    def wait(self, name: str, tenant: str | None = None) -> float:
        return FIRST_PAUSE if self._state(name.partition(" ")[0]) == OPEN else 0.0

    def word(self, replica: str) -> str:
        return _BREAKERS[self._state(replica)]

    def _state(self, server: str) -> int:
        return self._states.get(server, 0)


class Explanation(msgspec.Struct, frozen=True):
    """request: its sizes. targets: in the route's order, each with its replicas. places: names, best first.

    goes_to: where it goes; None: nowhere. is_waiting: it waits there, or elsewhere, for room. rejection: the error's
    message where the gateway refuses the request.
    """

    request: dict[str, Any]
    policy: str
    targets: list[dict[str, Any]]
    places: list[str]
    goes_to: str | None
    is_waiting: bool = False
    rejection: str | None = None

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def answer(
    view: FleetView,
    principal: Principal,
    operation: Operation,
    route: Route,
    want: PlacementRequest,
    *,
    states: Mapping[str, int],
    rejection: ApiError | None = None,
) -> Explanation:
    """Rank by the gateway's rule and say why. rejection: what refuses the request before it is ranked. states: of the
    breakers, as in BreakerStates, which `view` has too."""
    ranking = rank_operation(view, principal, operation, route, want)
    if rejection is None and not ranking.places:
        rejection = rejection_of(ranking)
    places = [] if rejection else ranking.places
    with_room = next((choice for choice, _ in places if choice.candidate.has_room), None)
    best = with_room or (places[0][0] if places else None)
    facts = want.facts
    return Explanation(
        request={
            "model": route.model,
            "tenant": facts.tenant,
            "prompt_tokens": want.prompt,
            "max_tokens": facts.output,
            "output_tokens": want.output,
            "modalities": sorted(facts.modalities),
            "tools": facts.tools,
            "tier": facts.tier,
        },
        policy=route.policy,
        targets=_targets(ranking, view.selection, BreakerStates(states)),
        places=[choice.replica.name for choice, _ in places],
        goes_to=best.replica.name if best else None,
        is_waiting=best is not None and with_room is None,
        rejection=rejection.message if rejection else None,
    )


def _targets(ranking: Ranking, selection: Selection, breakers: BreakerStates) -> list[dict[str, Any]]:
    reasons = {(one.position, one.replica): one.reason for one in explain_ranking(ranking)}
    found = []
    for position, (target, verdict) in enumerate(zip(ranking.route.targets, ranking.verdicts, strict=True)):
        misfit = ranking.misfits.get(id(target))
        if not verdict.startswith("no:") and (misfit or not target.replicas):
            verdict = f"no: {misfit.reason if misfit else reasons[position, None]}"
        placed = [place for place in ranking.places if place[0].target is target]
        rows = [] if verdict.startswith("no:") else _replicas(placed, target, ranking.request, selection)
        rows = [
            row | {"breaker": breakers.word(row["replica"]), "left_out": reasons.get((position, row["replica"]))}
            for row in rows
        ]
        found.append(
            {"target": target.name, "conditions": str(target.conditions), "verdict": verdict, "replicas": rows}
        )
    return found


def _replicas(
    placed: list[Place], target: Target, want: PlacementRequest, selection: Selection
) -> list[dict[str, Any]]:
    """Those in `placed`, best first, then the others."""
    ranked = {choice.replica.name: choice.ranked for choice, _ in placed}
    candidates = {one.name: one for one in selection.candidates(target.replicas, want)}
    rows = []
    for name in [*ranked, *(name for name in candidates if name not in ranked)]:
        candidate, place = candidates[name], ranked.get(name)
        rows.append(
            {
                "replica": name,
                "state": selection.state(name),
                "score": None if place is None else place.score,
                "credit": None if place is None else round(place.credit, 4),
                "relative_load": None if place is None else round(place.relative, 4),
                "pressure": None if place is None else round(place.pressure, 4),
                "is_over": place is not None and place.is_over,
                "overlap": candidate.overlap,
                "load": candidate.load,
                "found": candidate.found,
                "unread": candidate.unread,
                "need": candidate.need,
                "capacity": candidate.capacity,
                "kv_used": candidate.kv_used,
                "running": candidate.running,
                "waiting": candidate.waiting,
            }
        )
    return rows
