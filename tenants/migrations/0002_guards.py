"""What the database itself holds: the audit trail, tenant isolation, fixed names, and the feed of changes."""

from django.db import migrations

AUDIT = """
-- One audit entry for a written row. Arguments: the columns that name it, its tenant's column ('' for none), its secret
-- columns; several are parted by commas.
CREATE FUNCTION headrace_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    one_row jsonb := coalesce(new_row, old_row);
    subject text := (SELECT string_agg(one_row ->> name, '/' ORDER BY place)
                     FROM unnest(string_to_array(TG_ARGV[0], ',')) WITH ORDINALITY AS named (name, place));
    secret text;
    changed boolean;
BEGIN
    FOREACH secret IN ARRAY string_to_array(TG_ARGV[2], ',') LOOP
        changed := old_row IS NOT NULL AND new_row IS NOT NULL AND old_row -> secret <> new_row -> secret;
        IF coalesce(old_row ->> secret, '') <> '' THEN
            old_row := jsonb_set(old_row, ARRAY[secret], '"set"');
        END IF;
        IF coalesce(new_row ->> secret, '') <> '' THEN
            new_row := jsonb_set(new_row, ARRAY[secret], CASE WHEN changed THEN '"changed"' ELSE '"set"' END::jsonb);
        END IF;
    END LOOP;
    IF TG_OP = 'UPDATE' THEN
        SELECT jsonb_object_agg(n.key, o.value), jsonb_object_agg(n.key, n.value) INTO old_row, new_row
        FROM jsonb_each(new_row) AS n JOIN jsonb_each(old_row) AS o USING (key) WHERE n.value <> o.value;
        IF new_row IS NULL THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO public.tenants_auditentry (who, origin, tenant, action, subject, before, after) VALUES (
        coalesce(nullif(current_setting('headrace.actor', true), ''), session_user::text),
        coalesce(nullif(current_setting('headrace.origin', true), ''), 'database'),
        coalesce(one_row ->> nullif(TG_ARGV[1], ''), ''),
        CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END,
        TG_TABLE_NAME || ' ' || subject, old_row, new_row);
    RETURN NULL;
END $$;

-- Write every change of `target` to the audit trail; with `columns`, an update counts only if it names one of them.
CREATE FUNCTION headrace_audited(target regclass, key text, tenant_column text DEFAULT '', secrets text DEFAULT '',
                                 columns text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TRIGGER headrace_audit AFTER INSERT OR DELETE OR UPDATE %s ON %s FOR EACH ROW '
        'EXECUTE FUNCTION headrace_audit(%L, %L, %L)',
        coalesce('OF ' || (SELECT string_agg(quote_ident(c), ', ') FROM unnest(columns) AS c), ''),
        target, key, tenant_column, secrets);
END $$;

SELECT headrace_append_only('tenants_auditentry');
REVOKE INSERT, UPDATE, DELETE ON tenants_auditentry FROM headrace_system;
"""

GUARDS = """
ALTER TABLE tenants_tenant ADD CONSTRAINT tenants_tenant_time_zone
    CHECK (timezone(time_zone, TIMESTAMP '2000-01-01') IS NOT NULL);
ALTER TABLE tenants_project ADD CONSTRAINT tenants_project_tenant_id UNIQUE (tenant_id, id);
ALTER TABLE tenants_apikey
    ADD CONSTRAINT tenants_apikey_own_project FOREIGN KEY (tenant_id, project_id)
        REFERENCES tenants_project (tenant_id, id) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT tenants_apikey_digest CHECK (octet_length(digest) = 32);

SELECT headrace_fixed('tenants_tenant', 'slug'), headrace_fixed('tenants_project', 'slug'),
       headrace_fixed('tenants_project', 'tenant_id'), headrace_fixed('tenants_apikey', 'public_id');

SELECT headrace_tenant_only('tenants_tenant', 'slug', 'SELECT'),
       headrace_tenant_only('tenants_project', 'tenant_id', 'SELECT, INSERT, UPDATE, DELETE'),
       headrace_tenant_only('tenants_member', 'tenant_id', 'SELECT, INSERT, UPDATE, DELETE'),
       headrace_tenant_only('tenants_apikey', 'tenant_id', 'SELECT, INSERT, UPDATE, DELETE'),
       headrace_tenant_only('tenants_auditentry', 'tenant', 'SELECT');

DO $$
DECLARE
    -- All but last_used_at, which the ledger's drain writes and nobody needs to hear of.
    of_key text[] := (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
                      WHERE attrelid = 'tenants_apikey'::regclass AND attnum > 0 AND NOT attisdropped
                            AND attname <> 'last_used_at');
BEGIN
    PERFORM headrace_watch('tenants_tenant', 'slug'), headrace_watch('tenants_project', 'id'),
            headrace_watch('tenants_apikey', 'public_id', of_key);
    PERFORM headrace_audited('tenants_tenant', 'slug', 'slug'),
            headrace_audited('tenants_project', 'tenant_id,slug', 'tenant_id'),
            headrace_audited('tenants_member', 'tenant_id,user_id', 'tenant_id'),
            headrace_audited('tenants_apikey', 'public_id', 'tenant_id', 'digest', of_key),
            headrace_audited('auth_user', 'username', '', 'password', ARRAY['password', 'username', 'email',
                             'first_name', 'last_name', 'is_active', 'is_staff', 'is_superuser']);
END $$;
"""

DROP = """
DROP TRIGGER headrace_audit ON auth_user;
DROP FUNCTION headrace_audited(regclass, text, text, text, text[]), headrace_audit() CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.RunSQL(AUDIT, DROP),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
