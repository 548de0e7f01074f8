"""How many budgets and webhooks a tenant may have, and how many budgets one request may count in."""

from django.db import migrations

QUOTAS = """
SELECT headrace_limited('billing_budget', 'budgets', 200),
       headrace_limited('billing_budget', 'budgets_per_scope', 8,
           'project = $2 ->> ''project'' AND key = $2 ->> ''key'' AND model = $2 ->> ''model''',
           'budgets of one project, key and model'),
       headrace_limited('billing_webhookendpoint', 'webhooks', 20);
"""
DROP = """
DROP TRIGGER headrace_quota_budgets ON billing_budget;
DROP TRIGGER headrace_quota_budgets_per_scope ON billing_budget;
DROP TRIGGER headrace_quota_webhooks ON billing_webhookendpoint;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0025_price_starts"), ("tenants", "0012_quotas")]

    operations = [migrations.RunSQL(QUOTAS, DROP)]
