"""Hours of rows that priced others late: they take those off the unpriced, and no target did their tokens again."""

from django.db import migrations, models

HOURS = """
UPDATE billing_usagehour SET unpriced = -corrections WHERE kind = 'pricing';
LOCK TABLE billing_targethour IN EXCLUSIVE MODE;
UPDATE billing_targethour AS t SET
    input_tokens = t.input_tokens - p.input_tokens,
    cached_input_tokens = t.cached_input_tokens - p.cached_input_tokens,
    output_tokens = t.output_tokens - p.output_tokens
FROM (
    SELECT date_trunc('hour', hour, 'UTC') AS hour, target, model, currency, sum(input_tokens) AS input_tokens,
           sum(cached_input_tokens) AS cached_input_tokens, sum(output_tokens) AS output_tokens
    FROM billing_usagehour WHERE kind = 'pricing' GROUP BY 1, 2, 3, 4
) AS p
WHERE (t.hour, t.target, t.model, t.currency) = (p.hour, p.target, p.model, p.currency);
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0009_drop_month")]

    operations = [
        migrations.AlterField(
            model_name="usagehour",
            name="unpriced",
            field=models.BigIntegerField(help_text="Requests without a price; negative: so many were given one later."),
        ),
        migrations.RunSQL(HOURS, migrations.RunSQL.noop),
    ]
