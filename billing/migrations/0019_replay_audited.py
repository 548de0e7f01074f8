"""Who gave dead letters to the ledger again. How they came is in their own row."""

from django.db import migrations

CREATE = """
CREATE TRIGGER headrace_audit AFTER UPDATE OF replayed_at ON billing_deadletter FOR EACH ROW
EXECUTE FUNCTION headrace_audit('entry', '', '');
"""
DROP = "DROP TRIGGER headrace_audit ON billing_deadletter;"


class Migration(migrations.Migration):
    dependencies = [("billing", "0018_currency_fixed")]

    operations = [migrations.RunSQL(CREATE, DROP)]
