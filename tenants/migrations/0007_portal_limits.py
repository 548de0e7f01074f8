"""Tenants set limits per model for their projects and keys themselves; what the operators set for all of them stays."""

from django.db import migrations

GRANTS = """
GRANT INSERT, UPDATE, DELETE ON tenants_modellimits TO headrace_app;
CREATE POLICY headrace_own ON tenants_modellimits AS RESTRICTIVE FOR INSERT TO headrace_app
    WITH CHECK (project <> '' OR key <> '');
CREATE POLICY headrace_own_change ON tenants_modellimits AS RESTRICTIVE FOR UPDATE TO headrace_app
    USING (project <> '' OR key <> '');
CREATE POLICY headrace_own_end ON tenants_modellimits AS RESTRICTIVE FOR DELETE TO headrace_app
    USING (project <> '' OR key <> '');
"""
REVOKES = """
DROP POLICY headrace_own ON tenants_modellimits;
DROP POLICY headrace_own_change ON tenants_modellimits;
DROP POLICY headrace_own_end ON tenants_modellimits;
REVOKE INSERT, UPDATE, DELETE ON tenants_modellimits FROM headrace_app;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_model_limits")]

    operations = [migrations.RunSQL(GRANTS, REVOKES)]
