"""The few requests that failed or were left, found without looking at those that went well."""

from django.db import migrations

CREATE = """
CREATE INDEX billing_usagerecord_not_ok ON billing_usagerecord (tenant, admitted_at, request_id) WHERE status <> 'ok';
"""
DROP = "DROP INDEX billing_usagerecord_not_ok;"


class Migration(migrations.Migration):
    dependencies = [("billing", "0013_corrections")]

    operations = [migrations.RunSQL(CREATE, DROP)]
