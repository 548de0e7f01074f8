"""What a report is made of: of each pool what was up and what it cost, and what it was asked for and charged.

The database adds hours up as far as they are alike: of one bucket, sampled as well, paid for in one currency. So a
report of a year takes hardly longer than one of a day.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Min

from billing.cost.arithmetic import Tokens
from billing.cost.pool_hours import Stretch, Worked
from billing.models import TargetHour
from engines.models import Pool, PoolHour

# An hour of which less was sampled is a gap: its tokens are not set against half its cost.
SEEN_SHARE = 0.9
_MIN_SPAN = 60.0
# How late the newest samples may be in the hours, and for how long one speaks (engines/load).
_LATE = timedelta(minutes=2)
_PERIOD = timedelta(seconds=10)

# Hours of each pool that were sampled or used. `span` is how many seconds could have been sampled (none before the
# pool's first sample or, where it never was, its first use, nor to come), `main` the currency of most of the cost, or
# of all of it where the hour `is_plain`. `kind` is twice the pool's number, and one more where the hour was seen: one
# number to group by. A replica's rate counts for the best hour where at least one was up for half of it. Buckets are
# local days and months; hours, which a clock set back has twice, are of UTC. A bucket has the hours that begin in it;
# those that nobody sampled or used are what is left of its span.
_NEXT_HOUR = "date_trunc('hour', {} + interval '1 hour' - interval '1 microsecond', 'UTC')"  # of UTC, unless it is one
_SUMS = f"""
WITH pools AS MATERIALIZED (
    SELECT *, until - interval '1 hour' AS last_whole
    FROM unnest(%(pools)s::text[], %(firsts)s::timestamptz[], %(untils)s::timestamptz[])
        WITH ORDINALITY AS p (pool, first_at, until, number)
), sampled AS (
    SELECT pool, hour, sum(up_seconds) AS up, sum(covered_seconds) AS covered, max(cost) AS cost,
           count(*) = 1 AS is_plain, max(currency) AS currency
    FROM engines_poolhour
    WHERE hour >= %(first)s AND hour < %(end)s AND (%(pool)s::text IS NULL OR pool = %(pool)s) GROUP BY 1, 2
), used AS (
    SELECT target AS pool, hour, sum(output_tokens::float8) AS output
    FROM billing_targethour
    WHERE hour >= %(first)s AND hour < %(end)s AND (%(pool)s::text IS NULL OR target = %(pool)s) GROUP BY 1, 2
), hours AS (
    SELECT pool, number, hour, coalesce(up, 0) AS up, coalesce(covered, 0) AS covered, cost, is_plain,
           coalesce(output, 0) AS output,
           CASE WHEN is_plain IS FALSE THEN (
               SELECT p.currency FROM engines_poolhour AS p WHERE p.pool = sampled.pool AND p.hour = sampled.hour
               ORDER BY p.cost DESC, p.currency LIMIT 1
           ) ELSE currency END AS main,
           CASE WHEN hour BETWEEN first_at AND last_whole THEN 3600 ELSE greatest(0, date_part('epoch',
               least(hour + interval '1 hour', until) - greatest(hour, first_at))) END AS span
    FROM sampled FULL JOIN used USING (pool, hour) JOIN pools USING (pool)
    OFFSET 0  -- a span is not to be worked out anew wherever it is named
), judged AS MATERIALIZED (
    SELECT pool, hour, main, up, output, cost, is_plain, span, greatest(0, span - covered) AS gap,
           2 * number + (span < {_MIN_SPAN} OR covered >= {SEEN_SHARE} * span)::int AS kind,
           CASE WHEN %(by)s = 'hour' THEN hour AT TIME ZONE 'UTC'
                ELSE date_trunc(%(by)s, hour AT TIME ZONE %(zone)s) END AS bucket
    FROM hours
), alike AS MATERIALIZED (
    SELECT kind, bucket, main, sum(up) AS up, sum(gap) AS gap, sum(span) AS span, max(hour) AS last_hour,
           max(output / (up / 3600)) FILTER (WHERE kind %% 2 = 1 AND span >= 1800 AND up >= 1800) AS best,
           sum(cost) FILTER (WHERE is_plain) AS cost
    FROM judged GROUP BY 1, 2, 3
), unit AS (
    SELECT CASE WHEN %(by)s = 'hour' THEN 'UTC' ELSE %(zone)s END AS zone, ('1 ' || %(by)s)::interval AS step
), buckets AS (
    SELECT number, bucket, date_part('epoch', least({_NEXT_HOUR.format("(bucket + step) AT TIME ZONE zone")}, until)
               - greatest({_NEXT_HOUR.format("bucket AT TIME ZONE zone")}, %(first)s, first_at)) AS span
    FROM pools, unit, generate_series(
        date_trunc(%(by)s, date_trunc('hour', greatest(%(first)s, first_at), 'UTC') AT TIME ZONE zone),
        (until - interval '1 microsecond') AT TIME ZONE zone, step) AS bucket
)
SELECT kind, bucket, main, NULL AS model, main AS currency, up, gap, last_hour, best, 0, 0, 0, cost FROM alike
UNION ALL
SELECT 2 * number, bucket, NULL, NULL, NULL, 0, span - coalesce(known, 0), NULL, NULL, 0, 0, 0, NULL
FROM buckets LEFT JOIN (SELECT kind / 2 AS number, bucket, sum(span) AS known FROM alike GROUP BY 1, 2) AS known
    USING (number, bucket)
WHERE span - coalesce(known, 0) > 0.5
UNION ALL
SELECT kind, bucket, main, NULL, currency, 0, 0, NULL, NULL, 0, 0, 0, sum(p.cost)
FROM judged JOIN engines_poolhour AS p USING (pool, hour) WHERE NOT is_plain GROUP BY 1, 2, 3, 5
UNION ALL
SELECT kind, bucket, main, model, currency, 0, 0, NULL, NULL, sum(input_tokens - cached_input_tokens)::bigint,
       sum(cached_input_tokens)::bigint, sum(output_tokens)::bigint, sum(t.cost)
FROM judged JOIN billing_targethour AS t ON target = pool AND t.hour = judged.hour
WHERE t.hour >= %(first)s AND t.hour < %(end)s AND (%(pool)s::text IS NULL OR target = %(pool)s)
GROUP BY 1, 2, 3, 4, 5
"""


def read(start: datetime, end: datetime, *, by: str, zone: str, pool: str | None, now: datetime) -> dict[str, Worked]:
    """Of each pool that was sampled or used in the hours that touch [start, end), what it did, in order of time."""
    pools = _pools(pool, now)
    first = start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    rows, names = _rows(pools, first, end, by, zone, pool), list(pools)
    found: dict[str, Worked] = {}
    stretches: dict[tuple[Any, ...], Stretch] = {}
    for kind, bucket, main, model, currency, *sums, amount in sorted(rows, key=itemgetter(0, 1)):
        if (stretch := stretches.get((kind, bucket, main))) is None:
            number, seen = divmod(kind, 2)
            stretch = stretches[kind, bucket, main] = Stretch(bucket, bool(seen), main)
            found.setdefault(names[number - 1], Worked()).stretches.append(stretch)
        up_seconds, gap, last_hour, best, *tokens = sums
        if model is not None:
            stretch.add_use(model, currency, Tokens(*tokens), amount)
            continue
        stretch.up_seconds += up_seconds
        stretch.gap += gap
        stretch.last_hour = last_hour or stretch.last_hour
        if amount is not None:
            stretch.cost[currency] = stretch.cost.get(currency, Decimal(0)) + amount
        if best:
            worked = found[names[kind // 2 - 1]]
            worked.best = max(worked.best or best, best)
    return found


def _rows(
    pools: dict[str, tuple[datetime, datetime]], first: datetime, end: datetime, by: str, zone: str, pool: str | None
) -> Iterator[tuple[Any, ...]]:
    values: dict[str, Any] = {
        "pool": pool,
        "pools": list(pools),
        "firsts": [first_at for first_at, _ in pools.values()],
        "untils": [min(end, until) for _, until in pools.values()],
        "first": first,
        "end": end,
        "by": by,
        "zone": zone,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # It is taken to add up a few hundred rows, for which these would do; of a year they are ten thousands.
        cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_nestloop = off")
        cursor.execute(_SUMS, values)
        yield from cursor.fetchall()


def _pools(pool: str | None, now: datetime) -> dict[str, tuple[datetime, datetime]]:
    """Of each pool its first sample (one that never was: its first use), and until when it should have been sampled:
    now, or its last sample if that is rolled up in a moment, or if the pool is no more, which costs nothing after it.
    One that was neither sampled nor used is left out."""
    living = set(Pool.objects.values_list("name", flat=True))
    sampled = PoolHour.objects.all() if pool is None else PoolHour.objects.filter(pool=pool)
    spans = sampled.order_by().values("pool").annotate(first=Min("first_at"), last=Max("last_at"))
    known = {row["pool"]: (row["first"], row["last"]) for row in spans}
    names = living | set(known) if pool is None else {pool}
    used = TargetHour.objects.filter(target__in=names - set(known)).order_by().values("target")
    known |= {row["target"]: (row["first"], None) for row in used.annotate(first=Min("hour"))}
    found: dict[str, tuple[datetime, datetime]] = {}
    for name, (first, last) in known.items():
        is_over = last is not None and (name not in living or now - last <= _LATE)
        found[name] = (first, min(now, last + _PERIOD) if is_over and last is not None else now)
    return found
