"""Invitations to a tenant, and the visits of operators."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import tenants.models.names

GUARDS = """
GRANT UPDATE (name, time_zone) ON tenants_tenant TO headrace_app;
ALTER TABLE tenants_invitation ADD CONSTRAINT tenants_invitation_digest CHECK (octet_length(digest) = 32);
SELECT headrace_tenant_only('tenants_invitation', 'tenant_id', 'SELECT, INSERT, UPDATE'),
       headrace_audited('tenants_invitation', 'tenant_id,email', 'tenant_id', 'digest'),
       headrace_audited('tenants_operatorvisit', 'tenant,operator', 'tenant'),
       headrace_append_only('tenants_operatorvisit');
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_guards")]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("admin", "Admin"),
                            ("developer", "Developer"),
                            ("finance", "Finance"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("invited_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(editable=False, null=True)),
                ("withdrawn_at", models.DateTimeField(editable=False, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="invitations", to="tenants.tenant"
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("accepted_at", None), ("withdrawn_at", None)),
                        fields=("tenant", "email"),
                        name="tenants_invitation_one_waiting",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "admin", "developer", "finance", "viewer"])),
                        name="tenants_invitation_role",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OperatorVisit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "tenant",
                    models.CharField(max_length=63, validators=[tenants.models.names.check_slug]),
                ),
                ("operator", models.CharField(max_length=150)),
                ("hour", models.DateTimeField()),
            ],
            options={
                "ordering": ("-hour",),
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "operator", "hour"), name="tenants_operatorvisit_once_an_hour"
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
