from django.db import models


class DroppedMonth(models.Model):
    """A month (UTC) whose records retention has dropped. The database writes it with the drop; its hours are kept."""

    month = models.DateField(primary_key=True)
    dropped_at = models.DateTimeField()
    records = models.BigIntegerField(help_text="How many rows went.")

    class Meta:
        ordering = ("-month",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"
