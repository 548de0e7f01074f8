"""The seeded hours against the drain's own sums of the same records, of a sample of the tenants."""

import time

from django.db import connection

from billing.ledger import BUCKET, SUMS, hours_of
from headrace_dev.bench.benchmark import BenchmarkFailed, Say
from headrace_dev.bench.ledger.part import Found, row, spread
from headrace_dev.bench.ledger.seeding.cast import slug

_COMPARE = f"""
WITH summed AS ({hours_of("(SELECT * FROM billing_usagerecord WHERE tenant = ANY(%(tenants)s))")}),
kept AS (SELECT * FROM billing_usagehour WHERE tenant = ANY(%(tenants)s))
SELECT count(*), coalesce(sum(k.requests), 0),
       count(*) FILTER (WHERE {" OR ".join(f"s.{name} IS DISTINCT FROM k.{name}" for name in SUMS)})
FROM summed AS s FULL JOIN kept AS k USING ({", ".join(BUCKET)})
"""


def measure(tenants: int, say: Say) -> Found:
    """Raises BenchmarkFailed for any difference, in any column of any hour."""
    sample = spread([slug(number) for number in range(tenants)], max(1, tenants // 100))
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_COMPARE, {"tenants": sample})
        hours, requests, different = cursor.fetchone()
    seconds = time.monotonic() - began
    if different or not hours:
        raise BenchmarkFailed(f"{different} of {hours} hours are not what the drain makes of their records")
    say(f"{hours:,} hours of {len(sample)} tenants are what the drain makes of their {int(requests):,} records")
    return Found([row("hours compared", count=hours, seconds=seconds)])
