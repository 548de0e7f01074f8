"""A first use that is being written keeps the zone it is summed in: it began the tenant's time, whoever commits first.

The drain holds `headrace.zones`, shared, while it writes (ledger.py). So whoever changes the zone of a tenant without
any use waits for it, and looks once more.
"""

from django.db import migrations

ZONE = """
CREATE OR REPLACE FUNCTION headrace_tenant_zone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    current public.billing_tenantzone;
    wanted text := public.headrace_zone(NEW.time_zone);
    following date;
BEGIN
    SELECT * INTO current FROM public.billing_tenantzone
    WHERE tenant = NEW.slug AND since <= now() ORDER BY since DESC LIMIT 1;
    IF TG_OP = 'UPDATE' AND NOT EXISTS (SELECT 1 FROM public.billing_usagehour WHERE tenant = NEW.slug) THEN
        PERFORM pg_advisory_xact_lock(hashtext('headrace.zones'));
    END IF;
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


class Migration(migrations.Migration):
    dependencies = [("billing", "0027_no_overflow")]

    operations = [migrations.RunSQL(ZONE, migrations.RunSQL.noop)]
