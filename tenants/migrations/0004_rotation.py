"""Secrets that a rotated key still answers to for a while."""

import django.db.models.deletion
from django.db import migrations, models

GUARDS = """
ALTER TABLE tenants_apikey ADD CONSTRAINT tenants_apikey_tenant_public_id UNIQUE (tenant_id, public_id);
ALTER TABLE tenants_retiredsecret
    ADD CONSTRAINT tenants_retiredsecret_own_key FOREIGN KEY (tenant_id, key_id)
        REFERENCES tenants_apikey (tenant_id, public_id) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT tenants_retiredsecret_digest CHECK (octet_length(digest) = 32);
SELECT headrace_tenant_only('tenants_retiredsecret', 'tenant_id', 'SELECT, INSERT, UPDATE, DELETE'),
       headrace_watch('tenants_retiredsecret', 'id'),
       headrace_audited('tenants_retiredsecret', 'key_id,hint', 'tenant_id', 'digest');
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_invitations")]

    operations = [
        migrations.CreateModel(
            name="RetiredSecret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, max_length=4)),
                ("until", models.DateTimeField()),
                (
                    "key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="retired", to="tenants.apikey"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenants.tenant"
                    ),
                ),
            ],
            options={"ordering": ("until",)},
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
