"""What the database itself holds of invoices: finalised ones stay as they are, series have no gaps, periods tile time,
and usage that comes after its period was invoiced is noted. Tenants see their own rows."""

from django.db import migrations

PERIODS = """
-- The instant a month begins: the first of its two midnights where clocks go back over it, the end of the gap where
-- they go forward over it. (PostgreSQL alone takes the second of two.)
CREATE FUNCTION headrace_month_start(month date, zone text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN (later - interval '1 hour') AT TIME ZONE zone = month::timestamp
                THEN later - interval '1 hour' ELSE later END
    FROM (SELECT month::timestamp AT TIME ZONE zone AS later) AS midnight
$$;

-- When the period of `tenant` that holds `at` began.
CREATE FUNCTION headrace_period_start(tenant_slug text, at timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    known public.billing_tenantzone := (SELECT z FROM public.billing_tenantzone AS z
                                        WHERE z.tenant = tenant_slug AND z.since <= at ORDER BY z.since DESC LIMIT 1);
    month date := date_trunc('month', at AT TIME ZONE coalesce(known.time_zone, 'UTC'))::date;
BEGIN
    IF month <= known.month THEN
        RETURN known.since;
    END IF;
    RETURN public.headrace_month_start(month, coalesce(known.time_zone, 'UTC'));
END $$;

-- A tenant's zone counts from the beginning of time; another one from the period after the running one, unless nothing
-- was used and nothing invoiced yet.
CREATE FUNCTION headrace_tenant_zone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    current public.billing_tenantzone;
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
        VALUES (NEW.slug, '1970-01-01', '1970-01-01Z', NEW.time_zone);
        RETURN NULL;
    END IF;
    following := greatest(date_trunc('month', now() AT TIME ZONE current.time_zone)::date, current.month)
                 + interval '1 month';
    INSERT INTO public.billing_tenantzone (tenant, month, since, time_zone)
    VALUES (NEW.slug, following, public.headrace_month_start(following, current.time_zone), NEW.time_zone)
    ON CONFLICT (tenant, month) DO UPDATE SET time_zone = excluded.time_zone;
    RETURN NULL;
END $$;

CREATE TRIGGER headrace_tenant_zone_new AFTER INSERT ON tenants_tenant FOR EACH ROW
    EXECUTE FUNCTION headrace_tenant_zone();
CREATE TRIGGER headrace_tenant_zone_change AFTER UPDATE ON tenants_tenant FOR EACH ROW
    WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone) EXECUTE FUNCTION headrace_tenant_zone();
INSERT INTO billing_tenantzone (tenant, month, since, time_zone)
    SELECT slug, '1970-01-01', '1970-01-01Z', time_zone FROM tenants_tenant;
"""

LATE = """
-- Notes what was written of a period already invoiced. The lock is the one that finalising takes alone: what comes is
-- either summed by the finalised invoice or noted here, never neither.
CREATE FUNCTION headrace_late_usage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    -- Nowhere on earth has a month begun 15 hours after it began in UTC and not begun.
    horizon timestamptz := date_trunc('month', now(), 'UTC') + interval '15 hours';
BEGIN
    IF NOT EXISTS (SELECT 1 FROM written WHERE admitted_at < horizon) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext('headrace.invoices'), hashtext(late.tenant))
    FROM (SELECT w.tenant FROM written AS w WHERE w.admitted_at < horizon GROUP BY w.tenant
          HAVING min(w.admitted_at) < public.headrace_period_start(w.tenant, now()) ORDER BY w.tenant) AS late;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO public.billing_lateusage (request_id, part, admitted_at, tenant, arrived_at)
    SELECT DISTINCT w.request_id, w.part, w.admitted_at, w.tenant, now()
    FROM written AS w JOIN public.billing_invoice AS i ON i.tenant_id = w.tenant
         AND w.admitted_at >= i.period_start AND w.admitted_at < i.period_end
    WHERE i.status = 'finalised' AND i.kind = 'invoice'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER headrace_late_usage AFTER INSERT ON billing_usagerecord REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION headrace_late_usage();
"""

FROZEN = """
CREATE FUNCTION headrace_invoice_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    voiding text[] := ARRAY['status', 'voided_at', 'void_reason'];
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status = 'finalised' AND NEW.status = 'voided'
       AND to_jsonb(NEW) - voiding = to_jsonb(OLD) - voiding THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'invoice % is %: it can only be voided or credited', OLD.number, OLD.status
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER headrace_invoice_frozen BEFORE UPDATE OR DELETE ON billing_invoice FOR EACH ROW
    WHEN (OLD.status <> 'draft') EXECUTE FUNCTION headrace_invoice_frozen();

-- A finalised invoice comes from a draft, so that its lines are there; nobody makes one that is voided already.
CREATE TRIGGER headrace_invoice_drafted BEFORE INSERT ON billing_invoice FOR EACH ROW WHEN (NEW.status <> 'draft')
    EXECUTE FUNCTION headrace_refuse('an invoice begins as a draft');

CREATE FUNCTION headrace_line_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    written public.billing_invoiceline := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    number text;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.invoice_id <> OLD.invoice_id THEN
        RAISE EXCEPTION 'a line stays on its invoice' USING ERRCODE = 'restrict_violation';
    END IF;
    -- The lock keeps an invoice from being finalised while its lines are written.
    SELECT i.number INTO number FROM public.billing_invoice AS i WHERE i.id = written.invoice_id FOR SHARE;
    IF number IS NOT NULL THEN
        RAISE EXCEPTION 'invoice % is finalised: its lines stay as they are', number
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN written;
END $$;
CREATE TRIGGER headrace_line_frozen BEFORE INSERT OR UPDATE OR DELETE ON billing_invoiceline FOR EACH ROW
    EXECUTE FUNCTION headrace_line_frozen();

-- A series goes on by one, by a finalised invoice; it may begin anywhere.
CREATE FUNCTION headrace_series() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF NEW.next_number <> OLD.next_number + 1
       AND EXISTS (SELECT 1 FROM public.billing_invoice WHERE legal_entity_id = OLD.slug AND sequence IS NOT NULL) THEN
        RAISE EXCEPTION 'the numbers of % have no gaps: the next one is %', OLD.slug, OLD.next_number
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER headrace_series BEFORE UPDATE ON billing_legalentity FOR EACH ROW
    WHEN (OLD.next_number IS DISTINCT FROM NEW.next_number) EXECUTE FUNCTION headrace_series();

-- At the commit: the number is the one before the next.
CREATE FUNCTION headrace_numbered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM public.billing_legalentity
                   WHERE slug = NEW.legal_entity_id AND next_number > NEW.sequence) THEN
        RAISE EXCEPTION 'invoice %: the number was not taken from the series', NEW.number
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER headrace_numbered AFTER UPDATE ON billing_invoice DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.sequence IS DISTINCT FROM NEW.sequence) EXECUTE FUNCTION headrace_numbered();

-- A credit that stands on an invoice stays as it was given.
CREATE FUNCTION headrace_credit_fixed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM public.billing_invoiceline AS l JOIN public.billing_invoice AS i ON i.id = l.invoice_id
               WHERE l.credit_id = OLD.id AND i.status <> 'draft') THEN
        RAISE EXCEPTION 'credit % stands on an invoice', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER headrace_credit_fixed BEFORE UPDATE OR DELETE ON billing_credit FOR EACH ROW
    EXECUTE FUNCTION headrace_credit_fixed();
"""

GUARDS = """
SELECT headrace_fixed('billing_legalentity', 'slug'), headrace_fixed('billing_billingaccount', 'tenant_id'),
       headrace_fixed('billing_invoice', 'tenant_id');

SELECT headrace_audited('billing_legalentity', 'slug', '', '', ARRAY['name', 'address', 'tax_id', 'email',
                        'company_data', 'invoice_prefix']),
       headrace_audited('billing_billingaccount', 'tenant_id', 'tenant_id'),
       headrace_audited('billing_credit', 'id', 'tenant_id'),
       headrace_audited('billing_invoice', 'id', 'tenant_id', 'content', ARRAY['status']);

SELECT headrace_tenant_only('billing_billingaccount', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_credit', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_invoice', 'tenant_id', 'SELECT'),
       headrace_tenant_only('billing_lateusage', 'tenant', 'SELECT'),
       headrace_tenant_only('billing_tenantzone', 'tenant', 'SELECT');

-- A line belongs to whom its invoice belongs to; the invoice is looked up under the reader's own row security.
ALTER TABLE billing_invoiceline ENABLE ROW LEVEL SECURITY;
CREATE POLICY headrace_tenant ON billing_invoiceline TO headrace_app
    USING (EXISTS (SELECT 1 FROM billing_invoice AS i WHERE i.id = invoice_id));
GRANT SELECT ON billing_invoiceline TO headrace_app;

REVOKE TRUNCATE ON billing_invoice, billing_invoiceline, billing_lateusage, billing_legalentity FROM headrace_system;
"""

DROP = """
DROP TRIGGER headrace_late_usage ON billing_usagerecord;
DROP TRIGGER headrace_tenant_zone_new ON tenants_tenant;
DROP TRIGGER headrace_tenant_zone_change ON tenants_tenant;
DROP FUNCTION headrace_late_usage(), headrace_tenant_zone(), headrace_period_start(text, timestamptz),
    headrace_month_start(date, text);
DROP FUNCTION headrace_invoice_frozen(), headrace_line_frozen(), headrace_series(), headrace_numbered(),
    headrace_credit_fixed() CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0004_invoices"), ("tenants", "0002_guards")]

    operations = [
        migrations.RunSQL(PERIODS, migrations.RunSQL.noop),
        migrations.RunSQL(LATE, migrations.RunSQL.noop),
        migrations.RunSQL(FROZEN, migrations.RunSQL.noop),
        migrations.RunSQL(GUARDS, DROP),
    ]
