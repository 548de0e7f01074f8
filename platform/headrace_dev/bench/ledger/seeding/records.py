"""The records, written by SQL into the partitions they belong to, in order of time, as a drain would have left them.

What a record says follows from its number and the seed alone: two seedings of one size at one time are the same.
"""

from datetime import datetime, timedelta

from headrace_dev.bench.ledger.seeding.mix import PHASES, TABLE, VARIANTS
from headrace_dev.bench.ledger.seeding.size import Size

# Layer by layer, each kept apart by OFFSET 0 so that nothing is computed twice: numbers, tokens, times, and the row. A
# request in 128 failed before its first byte and used nothing; three were left by their caller, one broke off.
INSERT = f"""
INSERT INTO {{partition}} (request_id, part, admitted_at, finished_at, tenant, project, key, model, target, replica,
    kind, status, finish_reason, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, usage_source,
    cost, cost_nano, currency, price, queue_ms, ttft_ms, tpot_ms, fallback, cache, labels, upstream_id)
SELECT request_id, 0, admitted_at, admitted_at + make_interval(secs => (ttft + output_tokens * 8) / 1000.0),
    tenant, project, key, model, target, replica, 'chat', status,
    CASE WHEN status = 'ok' THEN 'stop' END, input_tokens, cached_tokens, output_tokens, 0, 'reported',
    cost, ceil(cost * 1000000000)::bigint, currency, price, 0, CASE WHEN status <> 'error' THEN ttft END,
    CASE WHEN output_tokens > 1 THEN 8 END, 0, 'none', '{{{{}}}}', upstream
FROM (
    SELECT d.*, m.*, ((d.input_tokens - d.cached_tokens) * m.input + d.cached_tokens * m.cached_input
                      + d.output_tokens * m.output) * 0.000001 AS cost
    FROM (
        SELECT encode(int8send((ms << 16) | 28672 | (one & 4095))
                      || int8send((two & 4611686018427387903) | (-9223372036854775808)), 'hex')::uuid AS request_id,
               to_timestamp(ms / 1000::double precision) AS admitted_at, status, prompt AS input_tokens,
               prompt * ((two >> 8) & 3) / 4 AS cached_tokens, (50 + ((two >> 16) & 1023))::double precision AS ttft,
               CASE WHEN prompt > 0 THEN 1 + (16 << ((two >> 32) & 3)::integer) + ((two >> 40) & 63) ELSE 0 END
                   AS output_tokens, pick, to_hex(two) AS upstream
        FROM (
            SELECT ms, one, two, status,
                   CASE WHEN status = 'error' THEN 0 ELSE (64 << ((one >> 20) & 7)::integer) + ((one >> 24) & 63) END
                       AS prompt,
                   ((((one >> 32) & %(groups)s) * {PHASES}
                     + (hashint8extended(ms / 3600000, %(seed)s) & {PHASES - 1})) * {VARIANTS}
                    + ((one >> 12) & {VARIANTS - 1}))::integer AS pick
            FROM (
                SELECT ms, one, two, (ARRAY['error', 'cancelled', 'cancelled', 'cancelled', 'incomplete'])[
                    ((two >> 48) & 127)::integer + 1] AS odd
                FROM (
                    SELECT %(first_ms)s + (n - %(first)s) * %(span_ms)s::bigint / %(count)s AS ms,
                           hashint8extended(n, %(seed)s) AS one, hashint8extended(n, %(seed)s + 1) AS two
                    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
                    OFFSET 0
                ) AS hashed
            ) AS odds, LATERAL (SELECT coalesce(odd, 'ok') AS status) AS ended
            OFFSET 0
        ) AS asked
        OFFSET 0
    ) AS d JOIN {TABLE} AS m ON m.id = d.pick
    OFFSET 0
) AS priced
"""


def values(size: Size, start: datetime, end: datetime, slots: int) -> dict[str, int] | None:
    """The parameters of INSERT for the records of [start, end); None if there are none."""
    first, beyond = size.count_before(start), size.count_before(end)
    if first == beyond:
        return None
    return {
        "first": first,
        "last": beyond - 1,
        "count": beyond - first,
        "first_ms": _ms(start),
        "span_ms": _ms(end) - _ms(start),
        "seed": size.seed,
        "groups": slots // PHASES - 1,
    }


def days(size: Size, month: datetime) -> list[tuple[datetime, datetime]]:
    """The days of `month`, a month's first instant (UTC), that are seeded; the last one ends with the seeding."""
    found, day = [], month
    while day < size.end and day.month == month.month:
        found.append((day, min(day + timedelta(days=1), size.end)))
        day += timedelta(days=1)
    return found


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
