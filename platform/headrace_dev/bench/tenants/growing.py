"""One tenant of a benchmark grown to its quotas, so that a request of its key meets as much of it as one may."""

from itertools import product

import psycopg

from tenants.quotas import DEFAULTS

_BUDGET = """
INSERT INTO billing_budget (tenant_id, name, project, key, model, amount, period, hard, enabled, set_by, thresholds,
    created_at)
VALUES (%s, %s, %s, %s, %s, 1000000, 'month', false, true, 'tenant', '{}', now())
"""
_LIMITS = """
INSERT INTO tenants_modellimits (tenant_id, project, key, model, requests_per_minute, ceilings)
VALUES (%s, %s, %s, %s, 1000000, '{}')
"""
_PROJECTS = """
INSERT INTO tenants_project (tenant_id, slug, name, created_at, ceilings)
SELECT %s, 'project-' || n, 'Project', now(), '{}' FROM generate_series(1, %s) AS n
"""
_KEYS = """
INSERT INTO tenants_apikey (public_id, tenant_id, project_id, name, digest, hint, models, priority, created_at,
    ceilings)
SELECT 'grown' || lpad(n::text, 7, '0'), p.tenant_id, p.id, 'key ' || n, sha256(n::text::bytea), '0000', '{}',
    'standard', now(), '{}'
FROM tenants_project AS p, generate_series(1, %s) AS n WHERE p.tenant_id = %s AND p.slug = 'app'
"""


def grow(url: str, tenant: str, model: str) -> dict[str, int]:
    """Give `tenant`, which has a key and the project `app`, all it may have; how many budgets a request counts in."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # the triggers count each row
        [(key,)] = connection.execute("SELECT public_id FROM tenants_apikey WHERE tenant_id = %s", [tenant]).fetchall()
        scopes = list(product(("app", ""), (key, ""), (model, "")))
        each = DEFAULTS["budgets_per_scope"]
        budgets = [(*scope, number) for scope in scopes for number in range(each)]
        others = DEFAULTS["budgets"] - len(budgets)
        budgets += [("", "", f"other-{number // each}", number % each) for number in range(others)]
        with connection.cursor() as cursor:
            cursor.executemany(_BUDGET, [(tenant, f"b{n}", *scope[:3]) for n, scope in enumerate(budgets)])
            limits = [("", "", model), ("app", "", model), ("", key, model)]
            limits += [("app", "", f"other-{number}") for number in range(DEFAULTS["limits"] - len(limits))]
            cursor.executemany(_LIMITS, [(tenant, *scope) for scope in limits])
        connection.execute(_PROJECTS, [tenant, DEFAULTS["projects"] - 1])
        connection.execute(_KEYS, [DEFAULTS["keys"] - 1, tenant])
    return {"budgets of a request": len(scopes) * each, **DEFAULTS}
