"""Privileges, the change feed, and the database functions with which later migrations guard their tables.

The roles themselves are made by `headrace_core.database.prepare` before any migration, which works as headrace_owner.
"""

from django.db import migrations, models
from django.db.models.functions import Now

PRIVILEGES = """
GRANT USAGE ON SCHEMA public TO headrace_system, headrace_app;
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public TO headrace_system;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO headrace_system;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON TABLES TO headrace_system;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO headrace_system;
"""

FUNCTIONS = """
-- Taken before any row is locked or any number drawn, and held to the end of the transaction: ids of config_change
-- become visible in the order they were drawn, and two writers of configuration cannot deadlock on each other's rows.
CREATE FUNCTION headrace_config_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.config'));
    RETURN NULL;
END $$;

CREATE FUNCTION headrace_config_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    changed jsonb := CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END;
BEGIN
    INSERT INTO public.config_change (table_name, ref) VALUES (TG_TABLE_NAME, changed ->> TG_ARGV[0]);
    RETURN NULL;
END $$;

-- Feed config_change from `target`. With `columns`, an update counts only if it names one of them.
CREATE FUNCTION headrace_watch(target regclass, key text, columns text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    updated text := 'UPDATE' || coalesce(
        ' OF ' || (SELECT string_agg(quote_ident(c), ', ') FROM unnest(columns) AS c), '');
BEGIN
    EXECUTE format('CREATE TRIGGER headrace_config_lock BEFORE INSERT OR DELETE OR %s ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION headrace_config_lock()', updated, target);
    EXECUTE format('CREATE TRIGGER headrace_config_write AFTER INSERT OR DELETE ON %s '
                   'FOR EACH ROW EXECUTE FUNCTION headrace_config_change(%L)', target, key);
    EXECUTE format('CREATE TRIGGER headrace_config_update AFTER %s ON %s FOR EACH ROW '
                   'WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION headrace_config_change(%L)',
                   updated, target, key);
END $$;

-- headrace_app sees and writes only rows of the tenant named by the setting; without it (NULL, or empty once a
-- transaction that had it is over), none.
CREATE FUNCTION headrace_tenant_only(target regclass, tenant_column text, privileges text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format($policy$
        CREATE POLICY headrace_tenant ON %1$s TO headrace_app
        USING (%2$I = nullif(current_setting('headrace.tenant', true), ''))
        WITH CHECK (%2$I = nullif(current_setting('headrace.tenant', true), ''))
        $policy$, target, tenant_column);
    EXECUTE format('GRANT %s ON %s TO headrace_app', privileges, target);
END $$;

CREATE FUNCTION headrace_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$;

-- Rows of `target` are written once. Retention drops whole partitions; tests truncate.
CREATE FUNCTION headrace_append_only(target regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER headrace_append_only BEFORE UPDATE OR DELETE ON %s FOR EACH ROW '
                   'EXECUTE FUNCTION headrace_refuse(%L)', target, target || ' is append-only');
END $$;

-- Names by which other rows refer to this one never change.
CREATE FUNCTION headrace_fixed(target regclass, fixed text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER %4$I BEFORE UPDATE OF %2$I ON %1$s FOR EACH ROW '
                   'WHEN (OLD.%2$I IS DISTINCT FROM NEW.%2$I) EXECUTE FUNCTION headrace_refuse(%3$L)',
                   target, fixed, target || '.' || fixed || ' never changes', 'headrace_fixed_' || fixed);
END $$;
"""

DROP_FUNCTIONS = """
DROP FUNCTION headrace_fixed(regclass, text), headrace_append_only(regclass), headrace_refuse(),
    headrace_tenant_only(regclass, text, text), headrace_watch(regclass, text, text[]), headrace_config_change(),
    headrace_config_lock();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.RunSQL(PRIVILEGES, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="ConfigChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("table_name", models.TextField()),
                ("ref", models.TextField()),
                ("at", models.DateTimeField(db_default=Now())),
            ],
            options={"db_table": "config_change", "default_permissions": ("view",)},
        ),
        migrations.RunSQL(FUNCTIONS, DROP_FUNCTIONS),
    ]
