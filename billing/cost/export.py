"""A report as JSON and as rows of text: the same figures, "-" where there are none."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from billing.amounts import telling
from billing.cost.line import Line
from billing.cost.report import Report
from billing.pricing import text

COLUMNS = (
    "start", "pool", "model", "cost", "currency", "up hours", "output", "all tokens", "per M output", "per M all",
    "full load", "used", "charged", "margin", "hosted", "break-even", "gap",
)  # fmt: skip


def document(report: Report) -> dict[str, Any]:
    """One object: what was asked, the lines, totals by currency, and a verdict on how complete they are."""
    asked = report.asked
    return {
        "parameters": {
            "from": asked.start.isoformat(),
            "to": asked.end.isoformat(),
            "by": asked.by,
            "time_zone": str(asked.zone),
            "pool": asked.pool,
            "model": asked.model,
            "currency": asked.currency,
        },
        "lines": [_line(line) for line in report.lines],
        "best_output_tokens_per_replica_hour": {pool: round(rate, 2) for pool, rate in report.best.items()},
        "totals": totals(report),
        "verdict": {
            "complete": not report.gap_seconds and not report.missing,
            "gap_seconds": round(report.gap_seconds, 1),
            "missing_rates": report.missing,
        },
    }


def totals(report: Report) -> list[dict[str, Any]]:
    """One for each currency: amounts of two are never added."""
    found = []
    for currency in report.currencies:
        lines = [line for line in report.lines if line.currency == currency]
        charged = [line.charged for line in lines]
        cost = sum((line.cost for line in lines if line.cost is not None), Decimal(0))
        known = None if None in charged else sum((each for each in charged if each is not None), Decimal(0))
        found.append(
            {
                "currency": currency or None,
                "cost": text(cost),
                "charged": None if known is None else text(known),
                "margin": None if known is None else text(known - cost),
                "output_tokens": sum(line.tokens.output for line in lines),
                "tokens": sum(line.tokens.all for line in lines),
            }
        )
    return found


def _line(line: Line) -> dict[str, Any]:
    fields = line._asdict()
    counts = {f"{name}_tokens": count for name, count in fields.pop("tokens")._asdict().items()}
    return {name: _json(value) for name, value in fields.items()} | counts


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return text(value)
    return value.isoformat() if isinstance(value, datetime) else value


def row(line: Line, by: str) -> list[str]:
    """`line` under COLUMNS."""
    return [
        when(line.start, by),
        line.pool,
        line.model or "-",
        _cost(line),
        line.currency or "-",
        f"{line.up_hours:,.2f}",
        f"{line.tokens.output:,}" if line.tokens.output else "-",
        f"{line.tokens.all:,}" if line.tokens.all else "-",
        telling(line.per_output),
        telling(line.per_token),
        telling(line.full_per_output),
        "-" if line.utilisation is None else f"{line.utilisation:.1%}",
        telling(line.charged, 2) if line.charged is not None else f"no rate {', '.join(line.missing)}",
        telling(line.margin, 2),
        telling(line.hosted_per_output),
        "-" if line.break_even is None else f"{line.break_even:.1%}",
        gap(line.gap_seconds),
    ]


def _cost(line: Line) -> str:
    if line.cost is not None:
        return telling(line.cost, 2)
    return f"no rate {line.missing[0]}" if line.up_hours else "not sampled"  # the pool's own rate stands first


def when(start: datetime, by: str) -> str:
    return start.strftime({"hour": "%Y-%m-%d %H:%M %z", "day": "%Y-%m-%d", "month": "%Y-%m"}[by])


def gap(seconds: float) -> str:
    return "" if not seconds else f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.0f} min"
