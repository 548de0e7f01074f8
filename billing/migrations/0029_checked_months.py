"""Which months of the books changed since a check read them, so that a check need not read all of them each night.

Each statement that writes a month's records, sums, invoices or lines notes the month and the hour, once: by a plain
insert of its own transaction, without a rule that one writer would wait for another at.
"""

from django.db import migrations, models

TABLES = {
    "billing_usagerecord": "(admitted_at AT TIME ZONE 'UTC')",
    "billing_usagehour": "(hour AT TIME ZONE 'UTC')",
    "billing_usageday": "(day AT TIME ZONE 'UTC')",
    "billing_targethour": "(hour AT TIME ZONE 'UTC')",
    "billing_invoice": "period::timestamp",
    "billing_invoiceline": "period::timestamp",
}
_ROWS = {
    "INSERT": "NEW TABLE AS written",
    "DELETE": "OLD TABLE AS written",
    "UPDATE": "OLD TABLE AS gone NEW TABLE AS written",
}


def _function(table: str, at: str) -> str:
    def note(rows: str) -> str:
        return f"""INSERT INTO public.billing_monthchange (month, at)
        SELECT m.month, this_hour FROM (SELECT DISTINCT date_trunc('month', {at})::date AS month FROM {rows}) AS m
        WHERE NOT EXISTS (
            SELECT 1 FROM public.billing_monthchange AS c WHERE c.month = m.month AND c.at = this_hour)"""

    return f"""
CREATE FUNCTION {table}_note_month() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    this_hour timestamptz := date_trunc('hour', clock_timestamp(), 'UTC');
BEGIN
    {note("written")};
    IF TG_OP = 'UPDATE' THEN
        {note("gone")};
    END IF;
    RETURN NULL;
END $$;
"""


def _triggers(table: str) -> str:
    return "".join(
        f"CREATE TRIGGER headrace_note_month_{event.lower()} AFTER {event} ON {table} REFERENCING {rows}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {table}_note_month();\n"
        for event, rows in _ROWS.items()
    )


NOTES = "".join(_function(table, at) + _triggers(table) for table, at in TABLES.items())
BACK = "".join(f"DROP FUNCTION {table}_note_month() CASCADE;\n" for table in TABLES)


class Migration(migrations.Migration):
    dependencies = [("billing", "0028_zone_of_first_use")]

    operations = [
        migrations.CreateModel(
            name="CheckedMonth",
            fields=[
                ("month", models.DateField(primary_key=True, serialize=False)),
                ("checked_at", models.DateTimeField(help_text="When the check began.")),
                ("differs", models.BooleanField()),
            ],
            options={"ordering": ("-month",), "default_permissions": ("view",)},
        ),
        migrations.CreateModel(
            name="MonthChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("month", models.DateField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ("-at",),
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["month", "at"], name="billing_monthchange_month")],
            },
        ),
        migrations.RunSQL(NOTES, BACK),
    ]
