"""An operation and its caller in routing's words: what is to be placed, what it demands, and what it may have."""

from headrace.gateway.operations.estimate import Estimator, tokenizer
from headrace.gateway.operations.operation import Operation
from routing.catalog import Route
from routing.conditions import Facts
from routing.placement import Caps, OperationSizes, default_output
from routing.prefix_index import Hasher
from routing.selection import PlacementRequest
from tenants.keyring import Principal
from tenants.meters.meter import OUTPUT_TOKENS


def caps_of(principal: Principal) -> Caps:
    """The caller's caps on one request."""
    limits = [meter.limit for meter in principal.meters if meter.measure == OUTPUT_TOKENS]
    return Caps(principal.max_prompt_tokens, principal.max_output_tokens, min(limits) if limits else None)


def sizes_of(operation: Operation) -> OperationSizes:
    """What the operation demands of a target."""
    return OperationSizes(
        operation.n, operation.max_tokens, operation.modalities, operation.decisive, operation.fallback
    )


def placement_request(
    route: Route, operation: Operation, principal: Principal, *, estimator: Estimator, hasher: Hasher
) -> PlacementRequest:
    """Estimate the operation, by the tokenizer of the route's first target with a replica, and hash its prompt."""
    wanted = next((target for target in route.targets if target.replicas), None)
    prompt = estimator.prompt_tokens(tokenizer(wanted) if wanted else "", operation)
    most = operation.max_tokens or default_output(caps_of(principal), route, operation.n)
    facts = Facts(
        prompt=prompt,
        output=most,
        modalities=operation.modalities,
        tools="tools" in operation.passed,
        tenant=principal.tenant,
        project=f"{principal.tenant}/{principal.project}" if principal.project else "",
        key=principal.key,
        tier=operation.tier,
    )
    scope = "" if route.cache_scope == "shared" else principal.tenant
    return PlacementRequest(
        prompt,
        operation.n * estimator.output_tokens(operation.model, most),
        hasher.chain(operation.prompt_text(), scope),
        facts,
        hasher.conversation(operation.opening(), principal.tenant, principal.key) if route.draws else b"",
    )
