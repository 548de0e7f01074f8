"""Names that can be read, and no moment that Python cannot."""

from django.db import migrations, models

from tenants.models.display_names import check_display_name
from tenants.models.moments import END, check_moment

NEARER = "UPDATE tenants_apikey SET expires_at = '9998-12-31 00:00:00+00' WHERE expires_at >= '9999-01-01 00:00:00+00'"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_ceilings")]

    operations = [
        migrations.AlterField("apikey", "name", models.CharField(max_length=100, validators=[check_display_name])),
        migrations.AlterField("project", "name", models.CharField(max_length=200, validators=[check_display_name])),
        migrations.AlterField("tenant", "name", models.CharField(max_length=200, validators=[check_display_name])),
        migrations.AlterField(
            "apikey", "expires_at", models.DateTimeField(blank=True, null=True, validators=[check_moment])
        ),
        migrations.RunSQL(NEARER, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "apikey",
            models.CheckConstraint(condition=models.Q(expires_at__lt=END), name="tenants_apikey_expires_at"),
        ),
    ]
