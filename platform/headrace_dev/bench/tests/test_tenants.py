"""What the benches of tenants' rows make: keys that may be used are loaded, a grown tenant is at its quotas."""

import pytest
from django.conf import settings
from django.db import connection

from headrace_dev.bench.tenants.growing import grow
from headrace_dev.bench.tenants.keys import Keys
from tenants.quotas import DEFAULTS
from tenants.tests.cast import make_key, make_project, make_tenant


@pytest.mark.bench
def test_it_loads_the_keys_that_may_be_used() -> None:
    report = Keys().run({"tenants": 3, "keys": 10, "revoked": 0.5, "rounds": 1}, print)
    assert [row["keys"] for row in report.rows] == [0, 15]


@pytest.mark.django_db(transaction=True)
def test_a_grown_tenant_is_at_its_quotas() -> None:
    make_key(make_project(make_tenant("acme"), "app"))
    assert grow(settings.DATABASE_URL, "acme", "demo")["budgets of a request"] == 64
    tables = {
        "budgets": "billing_budget",
        "limits": "tenants_modellimits",
        "projects": "tenants_project",
        "keys": "tenants_apikey",
    }
    with connection.cursor() as cursor:
        for quota, table in tables.items():
            cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = 'acme'")
            assert cursor.fetchone() == (DEFAULTS[quota],)
        cursor.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM billing_budget GROUP BY project, key, model) AS counted"
        )
        assert cursor.fetchone() == (DEFAULTS["budgets_per_scope"],)
