"""What operators set as limits of projects, keys and models is a ceiling for what their tenant sets there itself."""

from django.db import migrations, models

_LIMITS = (
    "requests_per_minute",
    "input_tokens_per_minute",
    "output_tokens_per_minute",
    "concurrency",
    "max_prompt_tokens",
    "max_output_tokens",
)
_TABLES = ("tenants_project", "tenants_apikey", "tenants_modellimits")
_NAMES = ", ".join(f"'{name}'" for name in _LIMITS)

GUARDS = f"""
-- Whoever row security does not confine is an operator: what they set is the ceiling, what they clear is none.
CREATE FUNCTION headrace_ceilings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted jsonb := to_jsonb(NEW);
    known jsonb := CASE WHEN TG_OP = 'UPDATE' THEN to_jsonb(OLD) ELSE '{{"ceilings": {{}}}}' END;
    ceilings jsonb := known -> 'ceilings';
    is_tenant boolean := row_security_active(TG_RELID);
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[{_NAMES}] LOOP
        IF is_tenant THEN
            IF ceilings ? name AND coalesce((wanted ->> name)::bigint > (ceilings ->> name)::bigint, true) THEN
                RAISE EXCEPTION '% is at most %: an operator set it', name, ceilings ->> name
                    USING ERRCODE = 'check_violation';
            END IF;
        ELSIF (wanted -> name) IS DISTINCT FROM coalesce(known -> name, 'null') THEN
            ceilings := ceilings - name;
            IF (wanted ->> name) IS NOT NULL THEN
                ceilings := ceilings || jsonb_build_object(name, wanted -> name);
            END IF;
        END IF;
    END LOOP;
    NEW.ceilings := ceilings;
    RETURN NEW;
END $$;

DO $$
DECLARE
    target text;
BEGIN
    FOREACH target IN ARRAY ARRAY['{"', '".join(_TABLES)}'] LOOP
        -- Nobody knows any more who set what is there: it stays until an operator lifts it.
        EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', target);
        EXECUTE format('UPDATE %I AS t SET ceilings = jsonb_strip_nulls((SELECT jsonb_object_agg(name, to_jsonb(t) -> name)'
                       ' FROM unnest(ARRAY[{_NAMES.replace("'", "''")}]) AS name))', target);
        EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', target);
        EXECUTE format('CREATE TRIGGER headrace_ceilings BEFORE INSERT OR UPDATE ON %I FOR EACH ROW '
                       'EXECUTE FUNCTION headrace_ceilings()', target);
        EXECUTE format('CREATE POLICY headrace_ceilings ON %I AS RESTRICTIVE FOR DELETE TO headrace_app '
                       'USING (ceilings = ''{{}}'')', target);
    END LOOP;
END $$;
"""
DROP = "\n".join(
    [f"DROP POLICY headrace_ceilings ON {table}; DROP TRIGGER headrace_ceilings ON {table};" for table in _TABLES]
    + ["DROP FUNCTION headrace_ceilings();"]
)


def _ceilings() -> "models.JSONField[object, object]":
    return models.JSONField(default=dict, editable=False, help_text="The limits that an operator set, by name.")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_portal_limits")]

    operations = [
        migrations.AddField("project", "ceilings", _ceilings()),
        migrations.AddField("apikey", "ceilings", _ceilings()),
        migrations.AddField("modellimits", "ceilings", _ceilings()),
        migrations.RunSQL(GUARDS, DROP),
    ]
