"""The feed of changes, the audit trail and fixed names for models, routes and targets."""

from django.db import migrations

GUARDS = """
SELECT headrace_watch('routing_model', 'name'), headrace_watch('routing_route', 'model_id'),
       headrace_watch('routing_target', 'id');
SELECT headrace_audited('routing_model', 'name'), headrace_audited('routing_route', 'model_id'),
       headrace_audited('routing_target', 'route_id,position');
SELECT headrace_fixed('routing_model', 'name');
GRANT SELECT ON routing_model, routing_route TO headrace_app;
"""


class Migration(migrations.Migration):
    dependencies = [("routing", "0001_initial"), ("tenants", "0002_guards")]

    operations = [migrations.RunSQL(GUARDS, migrations.RunSQL.noop)]
