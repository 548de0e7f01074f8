"""The feed of changes, the audit trail and fixed names for pools, replicas and providers; headrace_app sees none."""

from django.db import migrations

GUARDS = """
SELECT headrace_watch('engines_pool', 'name'), headrace_watch('engines_replica', 'id'),
       headrace_watch('engines_provider', 'name');
SELECT headrace_audited('engines_pool', 'name', secrets => 'api_key,admin_key'),
       headrace_audited('engines_replica', 'pool_id,name'),
       headrace_audited('engines_provider', 'name', secrets => 'api_key');
SELECT headrace_fixed('engines_pool', 'name'), headrace_fixed('engines_provider', 'name');
"""


class Migration(migrations.Migration):
    dependencies = [("engines", "0001_initial"), ("tenants", "0002_guards")]

    operations = [migrations.RunSQL(GUARDS, migrations.RunSQL.noop)]
