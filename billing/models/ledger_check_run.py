from django.db import models
from django.utils import timezone


class LedgerCheckRun(models.Model):
    """A nightly `ledger check`, whole: `report` is what its --json prints."""

    at = models.DateTimeField(default=timezone.now)
    differences = models.BigIntegerField()
    report = models.JSONField()

    class Meta:
        verbose_name = "check"
        ordering = ("-at",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}: {self.differences or 'no'} differences"
