"""Writing rows to the ledger: the records, and the hours and days they add to, in one transaction."""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection, transaction

from billing.events import COLUMNS, Entry
from billing.local_buckets import day_of, hour_of, zone_join
from billing.usage import PRICED_PARTS, PRICING
from engines.good_rows import write_good
from tenants.meters.meter import MOST_NANO

LOCK_TIMEOUT = "5s"
# Whoever changes the time zone of a tenant without use takes it alone: hours are of the zone that the tenant has then.
_ZONES_STAY = "SELECT pg_advisory_xact_lock_shared(hashtext('headrace.zones'))"
_COLUMNS = ", ".join(COLUMNS)
_GROUP = ("project", "key", "model", "target", "kind", "currency", "price")
BUCKET = ("tenant", "hour", *_GROUP)
DAY_BUCKET = ("tenant", "day", *_GROUP)


def _nano(total: str) -> dict[str, str]:
    """The columns of a sum of 1e-9 units of any size, given as numeric: what fits in one, and what is beyond that."""
    fitting = f"least(greatest({total}, -{MOST_NANO}), {MOST_NANO})"
    return {"cost_nano": fitting, "cost_nano_beyond": f"{total} - {fitting}"}


# Each column of an hour, or of a day, and what a row adds to it. A correction (part > 0) is no request; one that prices
# a request late takes it off the unpriced.
SUMS = {
    "requests": "count(*) FILTER (WHERE part = 0)",
    "errors": "count(*) FILTER (WHERE part = 0 AND status IN ('error', 'incomplete', 'reaped'))",
    "cancelled": "count(*) FILTER (WHERE part = 0 AND status = 'cancelled')",
    "abandoned": "count(*) FILTER (WHERE part = 0 AND status = 'abandoned')",
    "estimated": "count(*) FILTER (WHERE part = 0 AND usage_source <> 'reported')",
    "unpriced": "count(*) FILTER (WHERE part = 0 AND cost IS NULL)"
    f" - count(*) FILTER (WHERE kind = '{PRICING}' AND part = {PRICED_PARTS})",
    "corrections": "count(*) FILTER (WHERE part > 0)",
    "input_tokens": "sum(input_tokens)",
    "cached_input_tokens": "sum(cached_input_tokens)",
    "output_tokens": "sum(output_tokens)",
    "reasoning_tokens": "sum(reasoning_tokens)",
    "cost": "coalesce(sum(cost), 0)",
    **_nano("coalesce(sum(cost_nano), 0)"),
}
# The same of a day, from hours.
_DAY_SUMS = {name: f"sum({name})" for name in SUMS} | _nano("(sum(cost_nano) + sum(cost_nano_beyond))")


def _added(table: str) -> str:
    """What an upsert sets the columns of a row of `table` to that is there already."""
    nano = " + ".join(f"{row}.{name}" for name in ("cost_nano_beyond", "cost_nano") for row in (table, "excluded"))
    sums = {name: f"{table}.{name} + excluded.{name}" for name in SUMS} | _nano(f"({nano})")
    return ", ".join(f"{name} = {total}" for name, total in sums.items())


def hours_of(rows: str) -> str:
    """The query that sums `rows`, a table with the columns of a record, by the hour: BUCKET, then SUMS.

    Hours are the tenant's own, and of the period that has their records (periods.py).
    """
    return f"""
    SELECT r.tenant, {hour_of("admitted_at")} AS hour,
           project, key, model, target, kind, r.currency, coalesce(price, '') AS price,
           {", ".join(f"{total} AS {name}" for name, total in SUMS.items())}
    FROM {rows} AS r {zone_join("r.tenant", "admitted_at")}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"""


def day_sums(hours: str) -> str:
    """The query that adds `hours`, a table with the columns of an hour, up by the day: DAY_BUCKET, then SUMS.

    A day is told from the hour alone, so that what is summed again from hours comes to the same days.
    """
    return f"""
    SELECT h.tenant, {day_of("hour")} AS day, {", ".join(_GROUP)},
           {", ".join(f"{total} AS {name}" for name, total in _DAY_SUMS.items())}
    FROM {hours} AS h {zone_join("h.tenant", "hour")}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"""


def days_of(hours: str) -> str:
    """The statement that adds these sums to those of days, or begins them."""
    return f"""
    INSERT INTO billing_usageday ({", ".join([*DAY_BUCKET, *SUMS])})
    {day_sums(hours)} ORDER BY {", ".join(DAY_BUCKET)}"""


TARGET_BUCKET = ("hour", "target", "model", "currency")
_TARGET_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
TARGET_SUMS = (*_TARGET_TOKENS, "cost")


def target_sums(hours: str) -> str:
    """The query that adds `hours`, a table with the columns of an hour, up over tenants by the UTC hour.

    Of rows that price others late only the cost is added: their tokens are the others'.
    """
    tokens = (f"coalesce(sum({name}) FILTER (WHERE kind <> '{PRICING}'), 0) AS {name}" for name in _TARGET_TOKENS)
    return f"""
    SELECT date_trunc('hour', hour, 'UTC') AS hour, target, model, currency,
           {", ".join(tokens)}, sum(cost) AS cost
    FROM {hours} GROUP BY 1, 2, 3, 4"""


def targets_of(hours: str) -> str:
    """The statement that adds these sums to those of targets, or begins them."""
    return f"""
    INSERT INTO billing_targethour ({", ".join([*TARGET_BUCKET, *TARGET_SUMS])})
    {target_sums(hours)} ORDER BY 1, 2, 3, 4"""


# Each table's rows in the order of their keys, and the tables always in one order: two drains at once wait for each
# other and never deadlock. Hours are summed from the rows that were really inserted, so that an event read twice counts
# once; days and those of targets from these hours.
_WRITE = f"""
WITH written AS (
    INSERT INTO billing_usagerecord ({_COLUMNS})
    SELECT {_COLUMNS} FROM usage_batch ORDER BY request_id, part
    ON CONFLICT DO NOTHING
    RETURNING *
), sums AS ({hours_of("written")}
), hours AS (
    INSERT INTO billing_usagehour ({", ".join([*BUCKET, *SUMS])})
    SELECT {", ".join([*BUCKET, *SUMS])} FROM sums ORDER BY {", ".join(BUCKET)}
    ON CONFLICT ({", ".join(BUCKET)}) DO UPDATE SET
        {_added("billing_usagehour")}
), days AS ({days_of("sums")}
    ON CONFLICT ({", ".join(DAY_BUCKET)}) DO UPDATE SET
        {_added("billing_usageday")}
), targets AS ({targets_of("sums")}
    ON CONFLICT ({", ".join(TARGET_BUCKET)}) DO UPDATE SET
        {", ".join(f"{name} = billing_targethour.{name} + excluded.{name}" for name in TARGET_SUMS)}
)
SELECT count(*) FROM written
"""


@transaction.atomic
def write_entries(entries: Sequence[Entry]) -> int:
    """Add `entries` to the ledger; how many were not in it. All or none. May be repeated, and run twice at once."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        cursor.execute(_ZONES_STAY)
        cursor.execute("CREATE TEMPORARY TABLE usage_batch (LIKE billing_usagerecord) ON COMMIT DROP")
        # Unlike those of statements, a copy's errors are not made Django's by the cursor.
        with (
            connection.wrap_database_errors,
            cursor.copy(f"COPY usage_batch ({_COLUMNS}) FROM STDIN") as copy,
        ):
            for entry in entries:
                copy.write_row(entry.row)
        cursor.execute(_WRITE)
        (written,) = cursor.fetchone()
        cursor.execute("DROP TABLE usage_batch")
    return int(written)


def write_all_good(entries: Sequence[Entry]) -> tuple[int, list[tuple[Entry, str]]]:
    """As `write_entries`, but rows that the database refuses are handed back with its reason."""
    return write_good(entries, write_entries)


def touch_keys(entries: Sequence[Entry]) -> None:
    """Write when each key was last used, to the minute. Skips rows that somebody holds: the next use writes them."""
    used: dict[str, datetime] = {}
    for entry in entries:
        key, finished = entry.row[COLUMNS.index("key")], entry.row[COLUMNS.index("finished_at")]
        used[key] = max(finished, used.get(key, finished))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH used AS (SELECT * FROM unnest(%s::text[], %s::timestamptz[]) AS u (public_id, at)),
            stale AS (
                SELECT k.public_id, u.at FROM tenants_apikey k JOIN used u USING (public_id)
                WHERE k.last_used_at IS NULL OR k.last_used_at < u.at - interval '1 minute'
                FOR NO KEY UPDATE OF k SKIP LOCKED
            )
            UPDATE tenants_apikey k SET last_used_at = stale.at FROM stale WHERE k.public_id = stale.public_id
            """,
            [list(used), list(used.values())],
        )
