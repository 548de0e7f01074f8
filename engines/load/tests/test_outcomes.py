"""Counts of what became of requests, added up over gateways."""

import pytest
import redis.asyncio

from engines.errors import BadAnswer, Busy, Disconnected, Failed, Rejected, TimedOut, Unreachable
from engines.load.outcomes import Counted, Outcomes, forgive, read


async def counted(client: "redis.asyncio.Redis") -> Counted:
    return (await read(client, ["p/r"]))["p/r"]


async def test_it_adds_up_what_several_gateways_saw(valkey: "redis.asyncio.Redis") -> None:
    one, two = Outcomes(valkey), Outcomes(valkey)
    one.failed("p/r", Unreachable())
    two.failed("p/r", TimedOut("first_byte"))
    await one.report()
    await two.report(["p/r"])
    assert await counted(valkey) == Counted(ok=0, failed=2, beats=1, hard=1, slow=1)
    one.failed("p/r", Failed(status=500))
    one.answered("p/r")
    one.failed("p/r", BadAnswer())
    await one.report()
    assert await counted(valkey) == Counted(ok=1, failed=4, beats=1, hard=1, slow=0)
    await forgive(valkey, ["p/r"])
    assert (await counted(valkey)).hard == 0


@pytest.mark.parametrize(
    "error",
    [Busy("full", status=503), Rejected("no"), Failed(status=404), Failed(status=401), TimedOut("total"), ValueError()],
)
async def test_it_blames_no_replica_for_what_is_not_its_fault(valkey: "redis.asyncio.Redis", error: Exception) -> None:
    outcomes = Outcomes(valkey)
    outcomes.failed("p/r", error)
    await outcomes.report()
    assert await counted(valkey) == Counted()


async def test_it_keeps_what_it_could_not_tell() -> None:
    away = redis.asyncio.Redis(port=1, socket_connect_timeout=0.2)
    outcomes = Outcomes(away)
    outcomes.answered("p/r")
    outcomes.failed("p/r", Disconnected())
    with pytest.raises(redis.RedisError):
        await outcomes.report()
    outcomes.failed("p/r", Disconnected())
    assert outcomes._counts["p/r"] == Counted(ok=1, failed=2, hard=2)
    await away.aclose()
