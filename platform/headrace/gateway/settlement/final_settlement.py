"""What a request's own process says of it in the end, and saying it: at once, or later from a spool."""

import msgspec
import redis.asyncio

from billing.settlement import correction, remembered
from billing.usage import UsageEvent
from tenants.meters import holds
from tenants.meters.meter import COST, INPUT_TOKENS, OUTPUT_TOKENS

_encode = msgspec.json.encode


class Settlement(msgspec.Struct):
    """used: by measure, what the meters keep. taken: the hold's meters, as JSON. event: the usage record.

    is_received: whether what the event counts has reached the request's client. Where a reaper was first, only that is
    added to what it charged. was_reaped: whether it is known that a reaper was first.
    """

    request_id: str
    used: dict[str, int]
    taken: str
    event: UsageEvent
    is_received: bool = True
    was_reaped: bool = False


async def deliver(client: "redis.asyncio.Redis", word: Settlement) -> None:
    """Settle by `word`; if a reaper was first, note so in it and append the difference, if it was received.

    May be repeated. Raises redis.RedisError.
    """
    taken = word.taken.encode()
    answer = await holds.settle(
        client, request_id=word.request_id, used=word.used, event=_encode(word.event), taken=taken
    )
    if not answer.startswith("reaped:"):
        return
    word.was_reaped = True
    reaped = remembered(answer)
    late = correction(word.event, reaped) if word.is_received else None
    more = {}
    if late:
        limited = reaped.input_tokens if reaped.limited_input_tokens is None else reaped.limited_input_tokens
        more = {
            INPUT_TOKENS: word.used.get(INPUT_TOKENS, word.event.input_tokens) - limited,
            OUTPUT_TOKENS: late.output_tokens,
            COST: late.cost_nano or 0,
        }
    await holds.correct(
        client,
        request_id=word.request_id,
        tombstone=answer,
        event=_encode(late) if late else b"",
        taken=taken,
        more=more,
    )
