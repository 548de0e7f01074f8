"""A quota can be asked before a row is written, so that forms say what the trigger would."""

from django.db import migrations

ASKED = """
-- What stands against one row more of a table; NULL if nothing. `counted` says which rows count ($2: the new row as
-- JSON). Whoever asks counts what they may see: a tenant's own rows are all.
CREATE FUNCTION headrace_quota_refusal(target regclass, quota text, usual bigint, counted text, called text,
                                       added jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    owner text := added ->> 'tenant_id';
    most bigint := coalesce(public.headrace_quota_of(quota, owner), usual);
    known bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s WHERE tenant_id = $1 AND %s', target, counted)
        INTO known USING owner, added;
    IF known < most THEN
        RETURN NULL;
    END IF;
    RETURN format('%s has %s of at most %s %s. Remove one, or have an operator raise the quota.',
                  owner, known, most, called);
END $$;

-- The same of all quotas of the table, as its triggers have them.
CREATE FUNCTION headrace_quota_refusals(target regclass, added jsonb) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT said FROM (
        SELECT string_to_array(encode(t.tgargs, 'escape'), '\\000') AS said_by FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = target AND t.tgfoid = 'public.headrace_quota'::regproc
        ORDER BY t.tgname
    ) AS a, public.headrace_quota_refusal(target, said_by[1], said_by[2]::bigint, said_by[3], said_by[4], added) AS said
    WHERE said IS NOT NULL
$$;

-- Under the lock of the configuration two at once count each other.
CREATE OR REPLACE FUNCTION headrace_quota() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    said text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.config'));
    said := public.headrace_quota_refusal(TG_RELID::regclass, TG_ARGV[0], TG_ARGV[1]::bigint, TG_ARGV[2], TG_ARGV[3],
                                          to_jsonb(NEW));
    IF said IS NOT NULL THEN
        RAISE EXCEPTION '%', said USING ERRCODE = 'check_violation', CONSTRAINT = 'tenants_quota';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_quotas")]

    operations = [migrations.RunSQL(ASKED)]
