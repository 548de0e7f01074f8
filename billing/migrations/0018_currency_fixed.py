"""A tenant's currency is fixed once something was used or invoiced in it: budgets and sums would mix two."""

from django.db import migrations

FIXED = """
CREATE FUNCTION headrace_currency_fixed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM public.billing_usagehour WHERE tenant = NEW.slug AND currency <> NEW.currency)
       OR EXISTS (SELECT 1 FROM public.billing_invoice WHERE tenant_id = NEW.slug AND currency <> NEW.currency) THEN
        RAISE EXCEPTION 'the currency of tenant % is fixed: it has use or invoices in another', NEW.slug
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER headrace_currency_fixed BEFORE UPDATE OF currency ON tenants_tenant FOR EACH ROW
    WHEN (OLD.currency IS DISTINCT FROM NEW.currency) EXECUTE FUNCTION headrace_currency_fixed();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0017_usage_days"), ("tenants", "0009_moments")]

    operations = [migrations.RunSQL(FIXED, "DROP FUNCTION headrace_currency_fixed() CASCADE")]
