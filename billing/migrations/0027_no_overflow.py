"""Sums that do not overflow, without a table being written anew or read under a lock.

A numeric that is only given more digits keeps its rows as they are, once no rule on it has to be checked again: those
of records are put back unchecked, for the rows there are passed a stricter one. `cost_nano` stays a bigint, as another
type would be another table: what does not fit in it is in a column of its own, which no old row has to be told of.
"""

from django.db import migrations, models

WIDEN = """
DROP VIEW billing_usagecorrection;
ALTER TABLE billing_usagerecord
    DROP CONSTRAINT billing_usagerecord_cost,
    DROP CONSTRAINT billing_usagerecord_nano;
ALTER TABLE billing_usagerecord
    ALTER COLUMN cost TYPE numeric(36, 12);
ALTER TABLE billing_usagerecord
    ADD CONSTRAINT billing_usagerecord_cost CHECK (part > 0 OR (cost >= 0 AND cost_nano >= 0)) NOT VALID,
    ADD CONSTRAINT billing_usagerecord_nano CHECK (part > 0 OR cost_nano IS NOT DISTINCT FROM
        CASE WHEN cost IS NOT NULL THEN least(ceil(cost * 1000000000), 9000000000000000000) END) NOT VALID;
CREATE VIEW billing_usagecorrection WITH (security_invoker = true) AS
    SELECT request_id || '/' || part AS id, billing_usagerecord.* FROM billing_usagerecord WHERE part > 0;
GRANT SELECT ON billing_usagecorrection TO headrace_app;

ALTER TABLE billing_usagehour
    ALTER COLUMN cost TYPE numeric(36, 12), ADD COLUMN cost_nano_beyond numeric(36, 0) NOT NULL DEFAULT 0;
ALTER TABLE billing_usageday
    ALTER COLUMN cost TYPE numeric(36, 12), ADD COLUMN cost_nano_beyond numeric(36, 0) NOT NULL DEFAULT 0;
ALTER TABLE billing_targethour ALTER COLUMN cost TYPE numeric(36, 12);
ALTER TABLE billing_invoice
    ALTER COLUMN net TYPE numeric(36, 3), ALTER COLUMN tax TYPE numeric(36, 3), ALTER COLUMN total TYPE numeric(36, 3);
ALTER TABLE billing_invoiceline ALTER COLUMN amount TYPE numeric(36, 3);
"""


def _cost(**options: bool) -> models.Field:
    return models.DecimalField(max_digits=36, decimal_places=12, **options)


def _amount(**options: int) -> models.Field:
    return models.DecimalField(max_digits=36, decimal_places=3, **options)


def _beyond() -> models.Field:
    return models.DecimalField(
        max_digits=36, decimal_places=0, db_default=0, default=0, help_text="What does not fit in cost_nano."
    )


class Migration(migrations.Migration):
    dependencies = [("billing", "0026_quotas")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(WIDEN)],
            [
                migrations.AddField("usagehour", "cost_nano_beyond", _beyond()),
                migrations.AddField("usageday", "cost_nano_beyond", _beyond()),
                migrations.AlterField("usagerecord", "cost", _cost(null=True)),
                *(migrations.AlterField(name, "cost", _cost()) for name in ("usagehour", "usageday", "targethour")),
                *(migrations.AlterField("invoice", name, _amount(default=0)) for name in ("net", "tax", "total")),
                migrations.AlterField("invoiceline", "amount", _amount()),
            ],
        ),
        # A figure beyond 2^63 that is put right by hand; there are few rows.
        migrations.AlterField(
            "budgetadjustment",
            "nano",
            models.DecimalField(max_digits=36, decimal_places=0, help_text="In units of 1e-9, signed."),
        ),
    ]
