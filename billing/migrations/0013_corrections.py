"""The few corrections among millions of records, found without looking at those."""

from django.db import migrations

CREATE = """
CREATE INDEX billing_usagerecord_corrections ON billing_usagerecord (admitted_at, request_id, part) WHERE part > 0;
"""
DROP = "DROP INDEX billing_usagerecord_corrections;"


class Migration(migrations.Migration):
    dependencies = [("billing", "0012_set_by")]

    operations = [migrations.RunSQL(CREATE, DROP)]
