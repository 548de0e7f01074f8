"""Prices begin on whole milliseconds, and those set for now no earlier than 1.5 seconds after they are committed.

A price set `on` headrace.price_starts (billing/price_start.py) that takes another's place and would begin earlier is
moved to two seconds after; one that takes nobody's place to the commit. One that is about to begin is as fixed as one
in force: some process may charge by it already.
"""

from django.db import migrations

STARTS = """
ALTER TABLE billing_price DISABLE TRIGGER USER;
-- As requests were charged by it: the bound was rounded.
UPDATE billing_price SET effective_from = date_trunc('milliseconds', effective_from + interval '500 microseconds')
WHERE effective_from <> date_trunc('milliseconds', effective_from);
ALTER TABLE billing_price ENABLE TRIGGER USER;

CREATE FUNCTION headrace_price_start() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lead interval := '0';
BEGIN
    IF coalesce(current_setting('headrace.price_starts', true), '') <> 'on' THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT 1 FROM billing_price AS p WHERE p.model = NEW.model AND p.currency = NEW.currency
               AND p.target IN ('', NEW.target) AND p.tenant IN ('', NEW.tenant) AND p.id <> NEW.id
               AND p.effective_from < now()) THEN
        lead := '2 seconds';
    END IF;
    UPDATE billing_price
    SET effective_from = date_trunc('milliseconds', clock_timestamp() + lead + interval '999 microseconds')
    WHERE id = NEW.id AND effective_from < clock_timestamp() + lead - interval '500 milliseconds';
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER headrace_price_start AFTER INSERT OR UPDATE ON billing_price
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION headrace_price_start();

DROP TRIGGER billing_price_frozen ON billing_price;
CREATE TRIGGER billing_price_frozen BEFORE UPDATE OR DELETE ON billing_price FOR EACH ROW
    WHEN (OLD.effective_from <= clock_timestamp() + interval '2 seconds' AND pg_trigger_depth() = 0)
    EXECUTE FUNCTION headrace_refuse('a price in force is never changed: set a new one from a later moment on');
"""
BACK = """
DROP FUNCTION headrace_price_start() CASCADE;
DROP TRIGGER billing_price_frozen ON billing_price;
CREATE TRIGGER billing_price_frozen BEFORE UPDATE OR DELETE ON billing_price FOR EACH ROW
    WHEN (OLD.effective_from <= now())
    EXECUTE FUNCTION headrace_refuse('a price in force is never changed: set a new one from a later moment on');
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0024_hours_at_a_change")]

    operations = [migrations.RunSQL(STARTS, BACK)]
