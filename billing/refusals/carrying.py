"""From Redis to hours in Postgres. A batch is written with its name in one transaction and only then deleted, so one
that is found again, after a crash or by a second worker, is known by its name and counted once."""

import logging
from collections import Counter
from typing import Any

import redis
from django.db import connection, transaction

from billing.buckets import hour_of, zone_join
from billing.refusals.counting import BATCHES, PREFIX

MOST = 500  # batches in one transaction
log = logging.getLogger("headrace.ledger")

_ADD = f"""
INSERT INTO billing_refusedhour (tenant, hour, project, key, code, requests)
SELECT r.tenant, {hour_of("to_timestamp(r.at)")}, project, key, code, sum(n)
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])
    AS r (tenant, project, key, code, at, n)
{zone_join("r.tenant", "to_timestamp(r.at)")}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
ON CONFLICT (tenant, hour, project, key, code) DO UPDATE SET requests = billing_refusedhour.requests + excluded.requests
"""


def carry(client: "redis.Redis") -> int:
    """Carry MOST batches at most; how many refusals were new. May be repeated, and run twice at once.

    Raises django.db.OperationalError or redis.RedisError when one of the two is away; nothing is lost.
    """
    names = sorted(name.decode() for name in client.srandmember(BATCHES, MOST) or ())  # type: ignore[union-attr]
    if not names:
        return 0
    with client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.hgetall(PREFIX + name)
        batches = dict(zip(names, pipeline.execute(), strict=True))
    carried = _write(batches)
    with client.pipeline(transaction=True) as pipeline:
        pipeline.delete(*(PREFIX + name for name in names))
        pipeline.srem(BATCHES, *names)
        pipeline.execute()
    return carried


@transaction.atomic
def _write(batches: dict[str, dict[bytes, bytes]]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO billing_refusalbatch (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING RETURNING name",
            [list(batches)],
        )
        rows: Counter[tuple[Any, ...]] = Counter()
        for (name,) in cursor.fetchall():
            for field, number in batches[name].items():
                if (where := _read(field)) is not None and number.isdigit():
                    rows[where] += int(number)
        if rows:
            cursor.execute(_ADD, [*map(list, zip(*rows, strict=True)), list(rows.values())])
    return rows.total()


def _read(field: bytes) -> tuple[str, str, str, str, int] | None:
    try:
        tenant, project, key, code, quarter = field.decode().split(" ")
        return tenant, project, key, code, int(quarter)
    except ValueError:
        log.error("a count of refusals names nobody: %r", field[:200])
        return None
