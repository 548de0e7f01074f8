from django.db import models


class RefusedHour(models.Model):
    """How many requests of a key were refused with one error before they were admitted, by the tenant's local hour.

    `hour` is as of UsageHour. Written by rejections/draining.py alone.
    """

    tenant = models.TextField()
    hour = models.DateTimeField()
    project = models.TextField()
    key = models.TextField(help_text="The public id of the API key.")
    code = models.TextField(help_text="The code of the API's error.")
    requests = models.BigIntegerField()

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hour", "project", "key", "code"], name="billing_refusedhour_bucket"
            )
        ]
        indexes = [models.Index(fields=["hour"], name="billing_refusedhour_hour")]

    def __str__(self) -> str:
        return f"{self.tenant} {self.hour:%Y-%m-%d %H:%M} {self.code}"
