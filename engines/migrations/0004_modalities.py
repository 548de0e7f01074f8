import django.contrib.postgres.fields
from django.db import migrations, models

import engines.modalities


class Migration(migrations.Migration):
    dependencies = [("engines", "0003_load")]

    operations = [
        migrations.AddField(
            model_name="pool",
            name="modalities",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=8),
                blank=True,
                db_default=[],
                default=list,
                help_text="What its model takes: text, image, audio, video. Empty: as its engines say, where they do.",
                size=None,
                validators=[engines.modalities.check_modalities],
            ),
        ),
        migrations.AddConstraint(
            model_name="pool",
            constraint=models.CheckConstraint(
                condition=models.Q(modalities__contained_by=["text", "image", "audio", "video"]),
                name="engines_pool_modalities",
            ),
        ),
    ]
