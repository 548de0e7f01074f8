"""What the admin calls adjustments and alerts."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0006_budgets"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="budgetadjustment",
            options={"default_permissions": ("view",), "ordering": ("-id",), "verbose_name": "adjustment"},
        ),
        migrations.AlterModelOptions(
            name="budgetalert",
            options={"default_permissions": ("view",), "ordering": ("-id",), "verbose_name": "alert"},
        ),
    ]
