import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("engines", "0003_load"),
        ("routing", "0005_queue"),
    ]

    operations = [
        migrations.AddField(
            model_name="target",
            name="canary",
            field=models.FloatField(
                blank=True,
                help_text="It takes this share of the requests it matches before all others, and no more. In percent.",
                null=True,
                validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(100)],
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="shadow",
            field=models.FloatField(
                blank=True,
                help_text="This share of the requests it matches is copied to it; nobody sees its answers. In percent.",
                null=True,
                validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(100)],
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="weight",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Targets with a weight that follow each other share the requests by it.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(10000),
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("weight__isnull", True), models.Q(("weight__gte", 1), ("weight__lte", 10000)), _connector="OR"
                    ),
                    models.Q(
                        ("canary__isnull", True), models.Q(("canary__gte", 0), ("canary__lte", 100)), _connector="OR"
                    ),
                    models.Q(
                        ("shadow__isnull", True), models.Q(("shadow__gte", 0), ("shadow__lte", 100)), _connector="OR"
                    ),
                ),
                name="routing_target_shares",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("canary__isnull", True), ("weight__isnull", True)),
                    models.Q(("shadow__isnull", True), ("weight__isnull", True)),
                    models.Q(("canary__isnull", True), ("shadow__isnull", True)),
                    _connector="OR",
                ),
                name="routing_target_one_role",
                violation_error_message="A target has a weight, or is a canary, or a shadow.",
            ),
        ),
    ]
