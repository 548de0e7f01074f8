"""Whether PostgreSQL knows a time zone: Python's list and its own are two."""

from django.db import migrations

KNOWS = """
CREATE FUNCTION headrace_knows_zone(zone text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM now() AT TIME ZONE zone;
    RETURN true;
EXCEPTION WHEN data_exception OR invalid_parameter_value THEN
    RETURN false;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_moments")]

    operations = [migrations.RunSQL(KNOWS, "DROP FUNCTION headrace_knows_zone(text)")]
