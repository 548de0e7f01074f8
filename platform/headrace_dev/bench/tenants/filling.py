"""Tenants' rows by SQL, past the triggers that count and audit: hundreds of thousands in seconds."""

import psycopg

_KEYS = """
INSERT INTO tenants_apikey (public_id, tenant_id, project_id, name, digest, hint, models, priority, created_at,
    revoked_at, ceilings)
SELECT lpad(to_hex(p.id), 6, '0') || lpad(to_hex(n), 6, '0'), p.tenant_id, p.id, 'key ' || n,
    sha256((p.id || ' ' || n)::text::bytea), '0000', '{}', 'standard', now(),
    CASE WHEN n <= %(keys)s * %(revoked)s::float8 THEN now() END, '{}'
FROM tenants_project AS p, generate_series(1, %(keys)s) AS n
WHERE p.tenant_id LIKE %(like)s AND p.slug = 'app'
"""
_TENANTS = """
INSERT INTO tenants_tenant (slug, name, currency, time_zone, weight, cached_input_weight, created_at)
SELECT 'many-' || n, 'Many', 'EUR', 'UTC', 1, 1, now() FROM generate_series(1, %(tenants)s) AS n
"""
_PROJECTS = """
INSERT INTO tenants_project (tenant_id, slug, name, created_at, ceilings)
SELECT slug, 'app', 'App', now(), '{}' FROM tenants_tenant WHERE slug LIKE 'many-%%'
"""


def fill_keys(url: str, *, tenants: int, keys: int, revoked: float) -> None:
    """So many tenants with so many keys each, of which that part is revoked."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        values = {"tenants": tenants, "keys": keys, "revoked": revoked, "like": "many-%"}
        for statement in (_TENANTS, _PROJECTS, _KEYS):
            connection.execute(statement, values)
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE tenants_apikey")
