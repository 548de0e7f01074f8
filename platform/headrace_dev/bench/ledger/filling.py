"""A stream full of usage events, as settlement appends them."""

import random
import time
from decimal import Decimal

import msgspec
import redis

from billing.pricing import Rates
from billing.usage import UsageEvent, iso, new_request_id, priced
from tenants.meters.holds import USAGE

MODELS = 4
_RATES = Rates(Decimal("0.5"), Decimal("0.05"), Decimal("1.5"))
_AT_ONCE = 1000


def fill(client: "redis.Redis", *, tenants: int, events: int, seed: int) -> None:
    """Append `events` events of as many tenants, each of a few models; the same for a seed, but for the time."""
    rng = random.Random(seed)
    for start in range(0, events, _AT_ONCE):
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(min(_AT_ONCE, events - start)):
                pipeline.xadd(USAGE, {"e": msgspec.json.encode(_event(rng, tenants))})
            pipeline.execute()


def _event(rng: random.Random, tenants: int) -> UsageEvent:
    now = int(time.time() * 1000)
    number, prompt = rng.randrange(tenants), rng.randrange(50, 6000)
    return priced(
        UsageEvent(
            request_id=str(new_request_id(now)),
            tenant=f"tenant-{number}",
            project="app",
            key=f"KEY{number:09d}",
            model=f"model-{rng.randrange(MODELS)}",
            target="pool",
            replica="pool/r1",
            status="ok",
            finish_reason="stop",
            input_tokens=prompt,
            cached_input_tokens=rng.randrange(prompt),
            output_tokens=rng.randrange(1, 800),
            currency="EUR",
            price="model@1",
            rates=_RATES,
            admitted_at=iso(now),
            finished_at=iso(now + 900),
            ttft_ms=123.4,
            tpot_ms=8.25,
            labels={"client_request_id": f"{rng.getrandbits(64):016x}"},
            upstream_id=f"{rng.getrandbits(128):032x}",
        )
    )
