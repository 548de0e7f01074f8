"""What tenants do themselves in the portal: budgets, webhooks and their tests. Amounts spent stay the ledger's."""

import django.db.models.deletion
from django.db import migrations, models

GRANTS = """
-- Whose use a budget counts never changes; the operators alone delete one, and reset what it has counted.
GRANT INSERT ON billing_budget TO headrace_app;
GRANT UPDATE (amount, hard, enabled, thresholds, extra, extra_until) ON billing_budget TO headrace_app;
GRANT INSERT, DELETE ON billing_webhookendpoint TO headrace_app;
GRANT UPDATE (enabled) ON billing_webhookendpoint TO headrace_app;

-- Of notices a tenant makes tests alone, and they go with their endpoint.
GRANT INSERT, DELETE ON billing_notice TO headrace_app;
CREATE POLICY headrace_tests ON billing_notice AS RESTRICTIVE FOR INSERT TO headrace_app
    WITH CHECK (alert_id IS NULL AND email = '' AND attempts = 0 AND state = 'waiting' AND EXISTS (
        SELECT 1 FROM billing_webhookendpoint AS e WHERE e.id = endpoint_id));
"""
REVOKES = """
DROP POLICY headrace_tests ON billing_notice;
REVOKE INSERT, DELETE ON billing_notice, billing_webhookendpoint FROM headrace_app;
REVOKE INSERT ON billing_budget FROM headrace_app;
REVOKE UPDATE (amount, hard, enabled, thresholds, extra, extra_until) ON billing_budget FROM headrace_app;
REVOKE UPDATE (enabled) ON billing_webhookendpoint FROM headrace_app;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0010_priced_later")]

    operations = [
        migrations.RemoveConstraint(model_name="notice", name="billing_notice_once"),
        migrations.AlterField(
            model_name="notice",
            name="alert",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to="billing.budgetalert",
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                condition=models.Q(("alert__isnull", False)),
                fields=("alert", "endpoint", "email"),
                name="billing_notice_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                condition=models.Q(("alert__isnull", True), ("state", "waiting")),
                fields=("endpoint",),
                name="billing_notice_one_test",
            ),
        ),
        migrations.RunSQL(GRANTS, REVOKES),
    ]
