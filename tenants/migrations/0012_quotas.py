"""How many rows a tenant may have, held by triggers."""

from django.db import migrations, models

FUNCTIONS = """
CREATE FUNCTION headrace_quota_of(quota text, owner text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT q.most FROM public.tenants_quota AS q
    WHERE q.name = quota AND q.tenant IN (owner, '') ORDER BY q.tenant DESC LIMIT 1
$$;

-- One row more of a tenant's. Arguments: the quota, how many where none is noted, which of the table's rows count ($2:
-- the new row as JSON), what they are called. Under the lock of the configuration two at once count each other.
CREATE FUNCTION headrace_quota() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    row jsonb := to_jsonb(NEW);
    owner text := row ->> 'tenant_id';
    most bigint;
    known bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headrace.config'));
    most := coalesce(public.headrace_quota_of(TG_ARGV[0], owner), TG_ARGV[1]::bigint);
    EXECUTE format('SELECT count(*) FROM public.%I WHERE tenant_id = $1 AND %s', TG_TABLE_NAME, TG_ARGV[2])
        INTO known USING owner, row;
    IF known >= most THEN
        RAISE EXCEPTION 'A team may have % %, and % has as many. Remove one, or ask your operator for more.',
            most, TG_ARGV[3], owner USING ERRCODE = 'check_violation', CONSTRAINT = 'tenants_quota';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION headrace_limited(target regclass, quota text, most bigint, counted text DEFAULT 'true',
                                 called text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION headrace_quota(%L, %L, %L, %L)',
                   'headrace_quota_' || quota, target, quota, most, counted, coalesce(called, quota));
END $$;

SELECT headrace_limited('tenants_apikey', 'keys', 1000, 'revoked_at IS NULL'),
       headrace_limited('tenants_modellimits', 'limits', 200),
       headrace_limited('tenants_project', 'projects', 200),
       headrace_limited('tenants_member', 'members', 500),
       headrace_limited('tenants_invitation', 'invitations', 100, 'accepted_at IS NULL AND withdrawn_at IS NULL'),
       headrace_audited('tenants_quota', 'tenant,name', 'tenant');
"""

DROP = """
DROP FUNCTION headrace_limited(regclass, text, bigint, text, text), headrace_quota() CASCADE;
DROP FUNCTION headrace_quota_of(text, text);
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_project_weight")]

    operations = [
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.CharField(blank=True, max_length=63)),
                ("name", models.CharField(max_length=32)),
                ("most", models.BigIntegerField()),
            ],
            options={
                "ordering": ("tenant", "name"),
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="tenants_quota_tenant_name"),
                    models.CheckConstraint(condition=models.Q(("most__gte", 0)), name="tenants_quota_most"),
                ],
            },
        ),
        migrations.RunSQL(FUNCTIONS, DROP),
    ]
