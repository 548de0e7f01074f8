from django.db import models
from django.db.models.functions import Now


class DeadLetter(models.Model):
    """A usage event the ledger could not take, as it was read, until an operator replays it.

    `entry` is its id in the stream: the same event read twice is one letter.
    """

    entry = models.TextField(unique=True)
    event = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())
    replayed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return f"{self.entry}: {self.reason[:80]}"
