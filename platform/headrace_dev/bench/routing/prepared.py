"""A trace made ready to be replayed again and again: prompts rendered, hashed and written as JSON, once."""

import msgspec

from headrace_dev.bench.traces import Asked, Trace
from headrace_dev.simulator.fleet import prompt
from headrace_dev.simulator.fleet.request import Request

SHARED, OWN = "shared", "chat"  # the two models of the trace, by the cache scope of their routes


class Prepared(msgspec.Struct, frozen=True):
    """`text`: what the gateway's prefix index hashes; `chain`: what the replicas' caches do, salted by the scope."""

    asked: Asked
    model: str
    scope: str
    text: bytes
    chain: list[int]
    prompt: int
    max_tokens: int

    def request(self) -> Request:
        """What a replica is sent."""
        asked = self.asked
        return Request(str(asked.number), self.chain, self.prompt, asked.output, self.max_tokens)


def prepare(trace: Trace) -> list[Prepared]:
    page, most = trace.shape.replica.page, trace.shape.max_tokens
    return [_prepare(asked, page, most) for asked in trace.requests]


def _prepare(asked: Asked, page: int, most: int) -> Prepared:
    text = prompt.rendered(asked.messages)
    scope = "" if asked.is_shared else f"tenant-{asked.tenant}"
    said = prompt.answer(text, asked.output).encode()
    return Prepared(
        asked=asked,
        model=SHARED if asked.is_shared else OWN,
        scope=scope,
        text=msgspec.json.encode(asked.messages)[1:-1],
        chain=prompt.chain(text + said, scope, page),
        prompt=prompt.token_count(text),
        max_tokens=most,
    )
