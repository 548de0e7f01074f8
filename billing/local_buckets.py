"""A tenant's hours and days in SQL: what periods.py says of one instant, for whole tables of them."""


def zone_join(tenant: str, at: str) -> str:
    """The join that finds the tenant's time zone at an instant, for `hour_of` and `day_of`; as z."""
    return f"""LEFT JOIN LATERAL (
        SELECT month, since, time_zone FROM billing_tenantzone AS known
        WHERE known.tenant = {tenant} AND known.since <= {at} ORDER BY known.since DESC LIMIT 1
    ) AS z ON true"""


def hour_of(at: str) -> str:
    """The instant that names the hour in which an instant lies: of the period that has the instant, never before it."""
    return f"greatest(date_trunc('hour', {at}, coalesce(z.time_zone, 'UTC')), z.since)"


def day_of(at: str) -> str:
    """The instant that names the day in which an instant lies. Of a midnight that comes twice it is the second one."""
    return f"""CASE WHEN ({at} AT TIME ZONE coalesce(z.time_zone, 'UTC'))::date <= z.month THEN z.since
        ELSE greatest(date_trunc('day', {at}, coalesce(z.time_zone, 'UTC')), z.since) END"""
