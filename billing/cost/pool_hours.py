"""What each pool did, in stretches of hours that are alike: what a report is made of."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from billing.cost.arithmetic import NONE, Tokens, together


@dataclass
class Use:
    """What one model did at a pool. `charged` by the tenants' currencies."""

    tokens: Tokens = NONE
    charged: dict[str, Decimal] = field(default_factory=dict)


@dataclass
class Stretch:
    """Hours of one bucket that are alike. `main`: the currency most of their cost is in, None where there is none.

    `bucket` is a local day or the first of a local month, or the hour in UTC; without a zone.
    """

    bucket: datetime
    is_seen: bool
    main: str | None
    up_seconds: float = 0.0
    gap: float = 0.0
    last_hour: datetime | None = None
    cost: dict[str, Decimal] = field(default_factory=dict)
    uses: dict[str, Use] = field(default_factory=dict)

    def add_use(self, model: str, currency: str, tokens: Tokens, charged: Decimal) -> None:
        if (use := self.uses.get(model)) is None:
            use = self.uses[model] = Use(tokens)
        else:
            use.tokens = together((use.tokens, tokens))
        if charged:
            use.charged[currency] = charged


@dataclass
class Worked:
    """One pool. `best`: most output tokens that a replica wrote in an hour in which one was up for half of it."""

    stretches: list[Stretch] = field(default_factory=list)
    best: float | None = None

    @property
    def last_currency(self) -> str | None:
        """Of the latest hour that was sampled."""
        sampled = [each for each in self.stretches if each.main and each.last_hour]
        return max(sampled, key=lambda each: each.last_hour or datetime.min).main if sampled else None
