"""How many requests were refused, by the hour: each tenant sees its own; the names of batches are the worker's."""

import django.db.models.functions.datetime
from django.db import migrations, models

GUARDS = """
ALTER TABLE billing_refusedhour ADD CONSTRAINT billing_refusedhour_positive CHECK (requests > 0);
SELECT headrace_tenant_only('billing_refusedhour', 'tenant', 'SELECT');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0014_not_ok"),
    ]

    operations = [
        migrations.CreateModel(
            name="RefusalBatch",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["at"], name="billing_refusalbatch_at")],
            },
        ),
        migrations.CreateModel(
            name="RefusedHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.TextField()),
                ("hour", models.DateTimeField()),
                ("project", models.TextField()),
                ("key", models.TextField(help_text="The public id of the API key.")),
                ("code", models.TextField(help_text="The code of the API's error.")),
                ("requests", models.BigIntegerField()),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["hour"], name="billing_refusedhour_hour")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "hour", "project", "key", "code"), name="billing_refusedhour_bucket"
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARDS, migrations.RunSQL.noop),
    ]
