from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("routing", "0002_guards"),
    ]

    operations = [
        migrations.AddField(
            model_name="route",
            name="policy",
            field=models.CharField(
                choices=[
                    ("prefix_aware", "prefix aware"),
                    ("least_loaded", "least loaded"),
                    ("power_of_two", "power of two"),
                    ("round_robin", "round robin"),
                ],
                default="prefix_aware",
                help_text="How a replica is chosen. Prefix aware: the one with most of the prompt in its cache, unless it carries more than its share.",
                max_length=32,
            ),
        ),
        migrations.AddConstraint(
            model_name="route",
            constraint=models.CheckConstraint(
                condition=models.Q(("policy__in", ["prefix_aware", "least_loaded", "power_of_two", "round_robin"])),
                name="routing_route_policy",
            ),
        ),
    ]
