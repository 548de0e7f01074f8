"""A tenant's time zone is one that PostgreSQL knows when it is set.

It was a constraint, which let nothing of a tenant be changed any more whose zone a newer list has lost.
"""

from django.db import migrations

KNOWS = """
CREATE FUNCTION headrace_knows_zone(zone text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM now() AT TIME ZONE zone;
    RETURN true;
EXCEPTION WHEN data_exception OR invalid_parameter_value THEN
    RETURN false;
END $$;

CREATE FUNCTION headrace_zone_known() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT headrace_knows_zone(NEW.time_zone) THEN
        RAISE EXCEPTION 'time zone "%" not recognized', NEW.time_zone USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
ALTER TABLE tenants_tenant DROP CONSTRAINT tenants_tenant_time_zone;
CREATE TRIGGER headrace_zone_known_new BEFORE INSERT ON tenants_tenant FOR EACH ROW
    EXECUTE FUNCTION headrace_zone_known();
CREATE TRIGGER headrace_zone_known BEFORE UPDATE OF time_zone ON tenants_tenant FOR EACH ROW
    WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone) EXECUTE FUNCTION headrace_zone_known();
"""
BACK = """
DROP FUNCTION headrace_zone_known() CASCADE;
DROP FUNCTION headrace_knows_zone(text);
ALTER TABLE tenants_tenant ADD CONSTRAINT tenants_tenant_time_zone
    CHECK (timezone(time_zone, TIMESTAMP '2000-01-01') IS NOT NULL);
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_moments")]

    operations = [migrations.RunSQL(KNOWS, BACK)]
