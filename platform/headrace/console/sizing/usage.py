"""Lengths, rate curve and cache share of a tenant or a model, from the ledger instead of guesses.

Means come from the hourly rollups, so they are exact over the window; the deviation of lengths comes from the latest
SAMPLE records, since no rollup keeps it. Shadow copies are left out, and requests that never reached an engine
(abandoned) do no work and are not counted. The running hour is left out: it is not over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Avg, Count, F, Min, QuerySet, StdDev, Sum
from django.db.models.functions import TruncMinute

from billing.models import UsageHour, UsageRecord
from billing.usage import PRICING, SHADOW
from engines.sizing.cards import model_names
from engines.sizing.checks import known, within
from engines.sizing.errors import BadValue
from headrace_core.time_zones import zone_named
from routing.models import Model
from tenants.models import Tenant

SAMPLE = 100_000
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Measured:
    """`rate` requests/s in the busiest hour; `shares` of it by hour of day, on average; `busiest_minute` requests/s
    within that hour. Lengths in tokens, with their deviation / mean; `cached` share of input tokens."""

    of: str
    zone: str
    days: float
    requests: int
    rate: float
    busiest_hour: datetime
    busiest_minute: float
    prompt: float
    output: float
    prompt_cv: float
    output_cv: float
    cached: float
    shares: tuple[float, ...]

    def fields(self) -> dict[str, object]:
        """What engines.sizing.asking takes. A model whose public name is a card's is that model."""
        names = ("rate", "prompt", "output", "prompt_cv", "output_cv", "cached")
        found = {name: getattr(self, name) for name in names} | {"curve": self.shares}
        kind, _, name = self.of.partition(" ")
        return found | ({"model": name} if kind == "model" and name in model_names() else {})

    def told(self) -> tuple[str, ...]:
        """Where the figures come from, for the reader."""
        return (
            f"from the ledger of {self.of}: {self.requests:,} requests in {self.days:.1f} days; prompts "
            f"{self.prompt:,.0f} tokens (cv {self.prompt_cv:.2f}), {self.cached:.0%} of them cached, answers "
            f"{self.output:,.0f} (cv {self.output_cv:.2f})",
            f"the peak is the busiest hour, {self.busiest_hour:%Y-%m-%d %H:%M} {self.zone}: {self.rate:.3g} requests/s "
            f"on average, {self.busiest_minute:.3g} in its busiest minute",
        )


def measure(name: str, *, days: float, now: datetime | None = None) -> Measured:
    """The last `days` of the tenant or model called `name`; "tenant:NAME" or "model:NAME" where both exist (a tenant
    wins otherwise). Raises UnknownName with near names, or BadValue where there is nothing to measure."""
    within("days", days, 1 / 24, 3660)
    end = now or datetime.now(UTC)
    field, slug, zone = _find(name)
    span = {"hour__gte": end - timedelta(days=days), "hour__lte": end - HOUR}
    hours = UsageHour.objects.filter(**{field: slug}, **span).exclude(kind__in=(SHADOW, PRICING))
    total = hours.aggregate(
        requests=Sum(F("requests") - F("abandoned")),
        input=Sum("input_tokens"),
        cached=Sum("cached_input_tokens"),
        output=Sum("output_tokens"),
        first=Min("hour"),
    )
    requests = int(total["requests"] or 0)
    if requests < 1 or not total["input"]:
        raise BadValue("from-usage", name, f"no requests in the last {days:g} days (full hours only)")
    rows = list(hours.values("hour").annotate(count=Sum(F("requests") - F("abandoned"))).order_by("hour"))
    busiest = max(rows, key=lambda row: row["count"])
    rate = busiest["count"] / 3600
    records = UsageRecord.objects.filter(**{field: slug}).exclude(kind=SHADOW).exclude(status="abandoned")
    spread = _spread(records.filter(admitted_at__gte=span["hour__gte"], admitted_at__lt=end))
    measured_days = max(1.0, min(days, (end - total["first"]) / timedelta(days=1)))
    return Measured(
        of=f"{field} {slug}",
        zone=str(zone),
        days=measured_days,
        requests=requests,
        rate=rate,
        busiest_hour=busiest["hour"].astimezone(zone),
        busiest_minute=_busiest_minute(records, busiest["hour"]),
        prompt=max(1.0, total["input"] / requests),
        output=max(1.0, total["output"] / requests),
        prompt_cv=spread[0],
        output_cv=spread[1],
        cached=min(0.999, total["cached"] / total["input"]),
        shares=_shares([(row["hour"], row["count"]) for row in rows], zone, measured_days, rate),
    )


def _find(name: str) -> tuple[str, str, ZoneInfo]:
    """The column to filter by, its value, and the zone whose hours make the day (UTC for a model: many tenants)."""
    kind, _, rest = name.partition(":")
    if kind == "model" and rest:
        return "model", known("model", rest, _models()), ZoneInfo("UTC")
    wanted = rest if kind == "tenant" and rest else name
    zones = dict(Tenant.objects.values_list("slug", "time_zone"))
    if wanted in zones:
        return "tenant", wanted, zone_named(zones[wanted])
    if wanted == name and name in (models := _models()):
        return "model", name, ZoneInfo("UTC")
    tenant = known("tenant or model", wanted, [*zones, *(models if wanted == name else [])])
    return ("tenant", tenant, zone_named(zones[tenant])) if tenant in zones else ("model", tenant, ZoneInfo("UTC"))


def _models() -> list[str]:
    return list(Model.objects.values_list("name", flat=True))


def _spread(records: QuerySet[UsageRecord]) -> tuple[float, float]:
    """Deviation / mean of prompt and answer lengths over the latest SAMPLE records."""
    latest = UsageRecord.objects.filter(pk__in=records.order_by("-admitted_at").values("pk")[:SAMPLE])
    found = latest.aggregate(
        prompt=Avg("input_tokens"),
        prompt_deviation=StdDev("input_tokens"),
        output=Avg("output_tokens"),
        output_deviation=StdDev("output_tokens"),
    )

    def ratio(name: str) -> float:
        mean = float(found[name] or 0)
        return min(5.0, float(found[f"{name}_deviation"] or 0) / mean) if mean else 0.0

    return ratio("prompt"), ratio("output")


def _busiest_minute(records: QuerySet[UsageRecord], hour: datetime) -> float:
    minutes = (
        records.filter(admitted_at__gte=hour, admitted_at__lt=hour + HOUR)
        .order_by()
        .annotate(minute=TruncMinute("admitted_at"))
        .values("minute")
        .annotate(count=Count("*"))
    )
    return max((row["count"] for row in minutes), default=0) / 60


def _shares(rows: Sequence[tuple[datetime, int]], zone: ZoneInfo, days: float, rate: float) -> tuple[float, ...]:
    """Average requests of each hour of day, as a share of the busiest hour's."""
    sums = [0.0] * 24
    for hour, count in rows:
        sums[hour.astimezone(zone).hour] += count
    return tuple(min(1.0, each / days / 3600 / rate) for each in sums)
