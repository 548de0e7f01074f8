"""Who set a budget: what an operator set, its tenant does not change."""

from django.db import migrations, models

GUARDS = """
CREATE POLICY headrace_set_by ON billing_budget AS RESTRICTIVE FOR INSERT TO headrace_app
    WITH CHECK (set_by = 'tenant');
CREATE POLICY headrace_set_by_change ON billing_budget AS RESTRICTIVE FOR UPDATE TO headrace_app
    USING (set_by = 'tenant');
"""
DROP = """
DROP POLICY headrace_set_by ON billing_budget;
DROP POLICY headrace_set_by_change ON billing_budget;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0011_portal")]

    operations = [
        migrations.AddField(
            "budget",
            "set_by",
            models.CharField(
                choices=[("operator", "Operator"), ("tenant", "Tenant")],
                default="operator",
                help_text="Whose it is: the tenant's own members change only the tenant's.",
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(
                condition=models.Q(("set_by__in", ["operator", "tenant"])), name="billing_budget_set_by"
            ),
        ),
        migrations.RunSQL(GUARDS, DROP),
    ]
