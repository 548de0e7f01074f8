"""How long refusals stay: as long as records do (HEADRACE_RETENTION_MONTHS)."""

from datetime import UTC, datetime, time, timedelta

from billing import partitions
from billing.models import RefusalBatch, RefusedHour

# Longer than a web process may go on telling the same batch.
_NAMES_KEPT = timedelta(days=8)


def forget_old(months: int, now: datetime | None = None) -> int:
    """Delete the hours of months that ended `months` months ago or more (0: none ever), and the names of batches that
    nobody tells any more; how many hours went. May be repeated, and run twice at once."""
    now = now or datetime.now(UTC)
    RefusalBatch.objects.filter(at__lt=now - _NAMES_KEPT).delete()
    if not months:
        return 0
    first_kept = partitions.shift(now.astimezone(UTC).date(), -months)
    return RefusedHour.objects.filter(hour__lt=datetime.combine(first_kept, time(), UTC)).delete()[0]
