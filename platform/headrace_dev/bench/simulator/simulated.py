"""The same requests on a simulated replica, in virtual time."""

from collections.abc import Sequence

from headrace_dev.bench.simulator.asking import Seen
from headrace_dev.simulator.fleet.profile import Costs, Profile
from headrace_dev.simulator.fleet.prompt import chain_of_tokens
from headrace_dev.simulator.fleet.request import Request
from headrace_dev.simulator.fleet.virtual import Clock, VirtualReplica


def profile(info: dict[str, object], costs: Costs) -> Profile:
    """The profile of a real server, from its /server_info."""

    def number(name: str, default: int) -> int:
        value = info.get(name)
        return value if isinstance(value, int) and value > 0 else default

    return Profile(
        name="sglang, as measured",
        source="fitted on this machine just before",
        costs=costs,
        kv_tokens=number("max_total_tokens", 32768),
        page=number("page_size", 1),
        chunk=number("chunked_prefill_size", 2048),
        max_prefill=number("max_prefill_tokens", 16384),
        max_running=number("max_running_requests", 16),
    )


def replay(told: Profile, seen: Sequence[Seen], tokens: Sequence[list[int]]) -> list[Seen]:
    """What the simulation makes of the same prompts, sent at the moments they were really sent."""
    clock, ended = Clock(), dict[Request, Seen]()
    replica = VirtualReplica(told, clock)
    for one, prompt in zip(seen, tokens, strict=True):
        request = Request(
            rid=str(len(ended)),
            chain=chain_of_tokens(prompt, "", told.page),
            prompt=len(prompt),
            output=one.work.output,
            max_tokens=one.work.output,
        )
        ended[request] = one
        clock.at(one.sent, lambda request=request: replica.add(request))  # type: ignore[misc]
    clock.run()
    found = []
    for request, one in ended.items():
        first, last = request.first_at or 0.0, request.ended_at or 0.0
        tpot = (last - first) / max(1, request.generated - 1)
        found.append(Seen(one.work, one.sent, first - request.arrived, tpot, request.prompt, request.cached or 0))
    return found
