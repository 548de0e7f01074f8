"""What a process knows of replicas while they come and go."""

import asyncio

from headrace.gateway.operations.estimate import Estimator
from headrace.gateway.process.placement import Placement
from headrace.gateway.process.redis_client import connect
from headrace_dev.testing.stores import Services
from routing.prefix_index import Hasher

CHAIN = Hasher("test").chain(b"water runs down the hill " * 400, "acme")


async def test_it_keeps_what_a_replica_was_sent_that_came_while_redis_was_asked(services: Services) -> None:
    names, asked, is_over = {"pool/r1"}, 0, asyncio.Event()

    def replicas() -> set[str]:
        nonlocal asked
        asked += 1
        if asked > 2:  # in the next turn
            is_over.set()
        return set(names)

    async with connect(services.redis_url, 5) as client:
        placing = Placement("secret", Estimator(), client, replicas)
        following = asyncio.create_task(placing.follow_load())
        await asyncio.sleep(0)  # until it asks Redis
        assert asked == 1
        names.add("pool/r2")
        placing.index.sent("pool/r2", CHAIN, 2000, 1)
        await asyncio.wait_for(is_over.wait(), 10)
        assert placing.index.overlap("pool/r2", CHAIN, 2000) > 1000
        following.cancel()
        await asyncio.wait({following})
