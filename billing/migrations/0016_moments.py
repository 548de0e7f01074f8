"""No moment that Python cannot read."""

from django.db import migrations, models

from tenants.models.moments import END, check_moment

NEARER = (
    "UPDATE billing_budget SET extra_until = '9998-12-31 00:00:00+00' WHERE extra_until >= '9999-01-01 00:00:00+00'"
)


class Migration(migrations.Migration):
    dependencies = [("billing", "0015_refusals"), ("tenants", "0009_moments")]

    operations = [
        migrations.AlterField(
            "budget",
            "extra_until",
            models.DateTimeField(blank=True, help_text="When the increase ends.", null=True, validators=[check_moment]),
        ),
        migrations.RunSQL(NEARER, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "budget",
            models.CheckConstraint(condition=models.Q(extra_until__lt=END), name="billing_budget_extra_until"),
        ),
    ]
