"""Hours of the fleet, from its samples: what was up for how long, what that cost, and how much of it was seen.

A sample speaks for the time until its replica's next one, if that comes within GAP_SECONDS; before a longer gap it
speaks for PERIOD seconds, and the rest of the gap is neither up nor down: it is not covered. With d the seconds a
sample speaks for within the hour:

    up_seconds = sum(d of samples that were up)      cost = sum(d * hour_cost of those) / 3600

`covered_seconds` is the largest of its replicas' sums of d. Whole hours are made anew each time, so that it may be
repeated and late samples count.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from engines.load.samples import KEPT_DAYS, PERIOD
from engines.models import PoolHour

GAP_SECONDS = 30
HOUR = timedelta(hours=1)

_ROLL_UP = """
WITH seen AS (
    SELECT pool, replica, currency, up, hour_cost, at,
           lead(at) OVER (PARTITION BY replica ORDER BY at) AS next
    FROM engines_replicasample
    WHERE at >= %(start)s - make_interval(secs => %(gap)s) AND at < %(end)s + make_interval(secs => %(gap)s)
), spans AS (
    SELECT pool, replica, currency, up, hour_cost, at,
           extract(epoch FROM
               least(%(end)s, CASE WHEN next - at <= make_interval(secs => %(gap)s) THEN next
                                   ELSE at + make_interval(secs => %(period)s) END)
               - greatest(%(start)s, at)) AS seconds
    FROM seen WHERE at < %(end)s
), replicas AS (
    SELECT pool, currency, replica, min(at) AS first_at, max(at) AS last_at, sum(seconds) AS covered,
           coalesce(sum(seconds) FILTER (WHERE up), 0) AS up,
           coalesce(sum(seconds * hour_cost) FILTER (WHERE up), 0) / 3600 AS cost
    FROM spans WHERE seconds > 0 GROUP BY pool, currency, replica
)
INSERT INTO engines_poolhour (pool, hour, currency, cost, up_seconds, covered_seconds, first_at, last_at)
SELECT pool, %(start)s, currency, sum(cost), sum(up), max(covered), min(first_at), max(last_at)
FROM replicas GROUP BY pool, currency ORDER BY pool, currency
ON CONFLICT (pool, hour, currency) DO UPDATE SET
    cost = excluded.cost, up_seconds = excluded.up_seconds, covered_seconds = excluded.covered_seconds,
    first_at = excluded.first_at, last_at = excluded.last_at
"""


def roll_up(hour: datetime) -> None:
    """Make the hour that begins at `hour` anew from its samples."""
    values: dict[str, Any] = {"start": hour, "end": hour + HOUR, "gap": GAP_SECONDS, "period": PERIOD}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ROLL_UP, values)


def roll_up_since_last(now: datetime | None = None) -> int:
    """Make every hour from the last but one that was made, or the oldest sample's, until now; how many.

    Hours and samples to come, of a clock that was ahead, keep none of the present from being made.
    """
    now = now or datetime.now(UTC)
    last = PoolHour.objects.filter(hour__lte=now).aggregate(last=Max("hour"))["last"]
    if last is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT min(at) FROM engines_replicasample")
            (last,) = cursor.fetchone()
        if last is None:
            return 0
    first = max(last.replace(minute=0, second=0, microsecond=0) - HOUR, now - timedelta(days=KEPT_DAYS))
    hour, count = first.replace(minute=0, second=0, microsecond=0), 0
    while hour <= now:
        roll_up(hour)
        hour, count = hour + HOUR, count + 1
    return count
