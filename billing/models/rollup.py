from django.db import models
from django.db.models import Q, Sum

from billing.usage import PRICING

_TOKENS = {"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"}


class Rollup(models.Model):
    """Sums of a tenant's records and corrections over some span: what UsageHour and UsageDay have in common.

    A correction adds its tokens and cost to the span in which its request was admitted, and counts in `corrections`,
    not in `requests`. `cost` leaves out the `unpriced`; being of one price, it is exactly what the sums of tokens cost
    (pricing.py). What budgets were charged is `cost_nano` and `cost_nano_beyond` together: what passes
    pricing.MOST_NANO is in the second, so that no sum overflows.
    """

    tenant = models.TextField()
    project = models.TextField()
    key = models.TextField()
    model = models.TextField()
    target = models.TextField()
    kind = models.TextField()
    currency = models.CharField(max_length=3)
    price = models.TextField(default="", help_text="The version of the price; empty: unpriced.")
    requests = models.BigIntegerField()
    errors = models.BigIntegerField(help_text="Status error, incomplete or reaped.")
    cancelled = models.BigIntegerField()
    abandoned = models.BigIntegerField()
    estimated = models.BigIntegerField(help_text="Requests whose tokens the upstream did not report.")
    unpriced = models.BigIntegerField(help_text="Requests without a price; negative: so many were given one later.")
    corrections = models.BigIntegerField()
    input_tokens = models.BigIntegerField()
    cached_input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    reasoning_tokens = models.BigIntegerField()
    cost = models.DecimalField(max_digits=36, decimal_places=12)
    cost_nano = models.BigIntegerField(default=0, help_text="What budgets were charged, in units of 1e-9.")
    cost_nano_beyond = models.DecimalField(
        max_digits=36, decimal_places=0, db_default=0, default=0, help_text="What does not fit in cost_nano."
    )

    class Meta:
        abstract = True

    @property
    def charged_nano(self) -> int:
        return self.cost_nano + int(self.cost_nano_beyond)

    @staticmethod
    def total(name: str) -> Sum:
        """The sum of a column over any rows. The tokens of rows that price others late are those others'."""
        return Sum(name, filter=~Q(kind=PRICING) if name in _TOKENS else None, default=0)
