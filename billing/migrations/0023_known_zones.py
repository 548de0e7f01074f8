"""Periods are in zones that PostgreSQL knows, whatever name a tenant has: a name that it lacks stopped sums and pages.

Of `posix/Europe/Berlin` and `right/Europe/Berlin` the zone is Europe/Berlin; of any other unknown name it is UTC.
"""

from django.db import migrations

ZONE = """
CREATE FUNCTION headrace_zone(name text) RETURNS text LANGUAGE sql STABLE
RETURN CASE WHEN headrace_knows_zone(name) THEN name
            WHEN headrace_knows_zone(regexp_replace(name, '^(posix|right)/', ''))
            THEN regexp_replace(name, '^(posix|right)/', '') ELSE 'UTC' END;

-- As it was, but for the names, and that another zone is noted a minute before it counts at least: a transaction that
-- changes it at the very end of a month commits before the next one begins.
CREATE OR REPLACE FUNCTION headrace_tenant_zone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    current public.billing_tenantzone;
    wanted text := public.headrace_zone(NEW.time_zone);
    following date;
BEGIN
    SELECT * INTO current FROM public.billing_tenantzone
    WHERE tenant = NEW.slug AND since <= now() ORDER BY since DESC LIMIT 1;
    IF NOT EXISTS (SELECT 1 FROM public.billing_usagehour WHERE tenant = NEW.slug)
       AND NOT EXISTS (SELECT 1 FROM public.billing_invoice WHERE tenant_id = NEW.slug) THEN
        DELETE FROM public.billing_tenantzone WHERE tenant = NEW.slug;
        current := NULL;
    END IF;
    IF current.id IS NULL THEN
        INSERT INTO public.billing_tenantzone (tenant, month, since, time_zone)
        VALUES (NEW.slug, '1970-01-01', '1970-01-01Z', wanted);
        RETURN NULL;
    END IF;
    following := greatest(
        date_trunc('month', (now() + interval '1 minute') AT TIME ZONE current.time_zone)::date, current.month
    ) + interval '1 month';
    INSERT INTO public.billing_tenantzone (tenant, month, since, time_zone)
    VALUES (NEW.slug, following, public.headrace_month_start(following, current.time_zone), wanted)
    ON CONFLICT (tenant, month) DO UPDATE SET time_zone = excluded.time_zone;
    RETURN NULL;
END $$;

"""
MEND = """
UPDATE billing_tenantzone SET time_zone = headrace_zone(time_zone) WHERE NOT headrace_knows_zone(time_zone);
-- Their periods are mended already: this is no change of the zone.
ALTER TABLE tenants_tenant DISABLE TRIGGER headrace_tenant_zone_change;
UPDATE tenants_tenant SET time_zone = headrace_zone(time_zone) WHERE NOT headrace_knows_zone(time_zone);
ALTER TABLE tenants_tenant ENABLE TRIGGER headrace_tenant_zone_change;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0022_corrections_give_back"), ("tenants", "0010_known_zones")]

    operations = [
        migrations.RunSQL(ZONE, "DROP FUNCTION headrace_zone(text)"),
        migrations.RunSQL(MEND, migrations.RunSQL.noop),
    ]
