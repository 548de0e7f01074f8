"""A correction may be less than nothing: what an estimate had charged too much is given back.

The rules for records are as they were. They are not checked again on the rows that are there, which passed stricter
ones: months of records would be read under a lock that keeps the drain out.
"""

from django.db import migrations

_RULES = """
ALTER TABLE billing_usagerecord
    DROP CONSTRAINT billing_usagerecord_tokens,
    DROP CONSTRAINT billing_usagerecord_cost,
    ADD CONSTRAINT billing_usagerecord_tokens CHECK ({only}(
        input_tokens >= 0 AND output_tokens >= 0 AND cached_input_tokens >= 0 AND reasoning_tokens >= 0)) NOT VALID,
    ADD CONSTRAINT billing_usagerecord_cost CHECK ({only}(cost >= 0 AND cost_nano >= 0)) NOT VALID;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0021_late_in_the_east")]

    operations = [migrations.RunSQL(_RULES.format(only="part > 0 OR "), _RULES.format(only=""))]
