"""One target's hours, and when it was first used, without reading all targets' hours: reports of cost ask for both."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0019_replay_audited")]

    operations = [
        migrations.AddIndex(
            model_name="targethour",
            index=models.Index(fields=["target", "hour"], name="billing_targethour_of_target"),
        ),
    ]
