from django.db import models


class CheckedMonth(models.Model):
    """A month (UTC) of the books as a nightly check last read it. `differs`: it found a difference there."""

    month = models.DateField(primary_key=True)
    checked_at = models.DateTimeField(help_text="When the check began.")
    differs = models.BooleanField()

    class Meta:
        ordering = ("-month",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class MonthChange(models.Model):
    """Something was written to the books of a month within the hour that begins at `at`.

    Database triggers write these rows, in the transaction of the change itself, for each statement that changes
    records, their sums, invoices or lines; no writer waits for another. A month may have two rows of one hour.
    """

    month = models.DateField()
    at = models.DateTimeField()

    class Meta:
        ordering = ("-at",)
        default_permissions = ("view",)
        indexes = [models.Index(fields=["month", "at"], name="billing_monthchange_month")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} at {self.at:%Y-%m-%d %H:00}"
