"""From Redis to hours in Postgres. A batch is written with its name in one transaction and only then deleted, so one
that is found again, after a crash or by a second worker, is known by its name and counted once. What is no batch, or no
count, is told in the log and left out."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import redis
from django.db import connection, transaction

from billing.local_buckets import hour_of, zone_join
from billing.rejections.counting import BATCHES, PREFIX
from engines.good_rows import write_good

MOST = 500  # batches in one transaction
_MOST_COUNTED = 10**12  # of one process in a second
_LATEST = 10**10  # the year 2286
_NAME = re.compile(rb"[\x21-\x7e]{1,64}")
_Row = tuple[tuple[str, str, str, str, int], int]
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
    members: Any = client.srandmember(BATCHES, MOST) or ()
    names = sorted(name.decode() for name in members if _NAME.fullmatch(name))
    if nameless := [name for name in members if not _NAME.fullmatch(name)]:
        log.error("no batches of refusals: %r", nameless)
        client.srem(BATCHES, *nameless)
    if not names:
        return 0
    with client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.hgetall(PREFIX + name)
        batches = dict(zip(names, pipeline.execute(raise_on_error=False), strict=True))
    for name, batch in batches.items():
        if isinstance(batch, Exception):
            log.error("the batch %s of refusals cannot be read: %s", name, batch)
            batches[name] = {}
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
        counted: Counter[tuple[str, str, str, str, int]] = Counter()
        for (name,) in cursor.fetchall():
            for field, number in batches[name].items():
                if (row := _read(field, number)) is not None:
                    counted[row[0]] += row[1]
    carried, refused = write_good(list(counted.items()), _add)
    for row, why in refused:
        log.error("a count of refusals is left out: %s: %s", why, row)
    return carried


@transaction.atomic
def _add(rows: Sequence[_Row]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [*map(list, zip(*(where for where, _ in rows), strict=True)), [n for _, n in rows]])
    return sum(n for _, n in rows)


def _read(field: bytes, number: bytes) -> _Row | None:
    """Of whom, why and when, and how many; None where it is no count."""
    try:
        tenant, project, key, code, quarter = field.decode().split(" ")
        at, count = int(quarter), int(number)
    except ValueError:
        at = count = -1
    if not (0 <= at <= _LATEST and 0 <= count <= _MOST_COUNTED) or b"\x00" in field:
        log.error("no count of refusals: %r: %r", field[:200], number[:20])
        return None
    return (tenant, project, key, code, at), count
