"""The platform's own table: the feed by which every process learns that configuration changed."""

from django.db import models
from django.db.models.functions import Now


class ConfigChange(models.Model):
    """One row of a configuration table was written. Rows come from database triggers alone, never from Python.

    `id` grows in commit order (the trigger serialises writers on an advisory lock before it draws the number), so a
    reader that asks for `id > last` misses nothing. `ref` is the changed row's primary key as text.
    """

    table_name = models.TextField()
    ref = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "config_change"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.table_name} {self.ref}"
