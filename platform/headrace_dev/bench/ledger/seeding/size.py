"""How much is seeded, and of which time."""

from dataclasses import dataclass
from datetime import UTC, datetime

from billing.partitions import month_of, month_span, shift


@dataclass(frozen=True)
class Size:
    """`records` are spread evenly over [start, end): the calendar month (UTC) before the running one, and this one."""

    tenants: int
    keys: int
    records: int
    seed: int
    end: datetime

    @property
    def start(self) -> datetime:
        return month_span(shift(month_of(self.end), -1))[0]

    def count_before(self, moment: datetime) -> int:
        """How many of the records are older than `moment`."""
        share = (moment - self.start) / (self.end - self.start)
        return round(self.records * min(1.0, max(0.0, share)))


def until_now(*, tenants: int, keys: int, records: int, seed: int) -> Size:
    now = datetime.now(UTC)
    return Size(tenants, keys, records, seed, now.replace(microsecond=now.microsecond // 1000 * 1000))
