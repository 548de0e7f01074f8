"""`manage.py cost`: what a million tokens of our engines cost, beside what they are sold for."""

import json
from argparse import ArgumentTypeError
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing import rebuilding
from billing.cost import hosted
from billing.cost.export import COLUMNS, document, row
from billing.cost.report import Report, report
from billing.cost.report_query import UNITS, Asked, default_span
from engines.models import Pool
from headrace_core.currencies import check_currency
from headrace_core.time_zones import check_time_zone

_LEFT = {"start", "pool", "model", "currency"}


class Command(BaseCommand):
    help = (
        "Cost per million tokens, of each pool and model: as it was and at full load (the best sustained hour), beside "
        "what tenants were charged and a hosted provider's price. --from and --to take a date or a time of --zone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool")
        parser.add_argument("--model")
        parser.add_argument("--by", choices=UNITS, default="day")
        parser.add_argument("--from", dest="start", type=_moment, metavar="TIME")
        parser.add_argument("--to", dest="end", type=_moment, metavar="TIME")
        parser.add_argument("--zone", default="UTC", help="the time zone of days and months (UTC)")
        parser.add_argument("--currency", help="convert all to this one; else each pool's own")
        parser.add_argument(
            "--hosted", nargs=3, metavar=("INPUT", "OUTPUT", "CURRENCY"), help="compare with this price"
        )
        parser.add_argument("--rebuild", action="store_true", help="sum the hours of targets anew first")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        zone = _zone(options["zone"])
        if options["pool"] and not Pool.objects.filter(name=options["pool"]).exists():
            self.stderr.write(f"there is no pool {options['pool']} any more; what was sampled of it follows")
        if options["rebuild"]:
            rebuilding.target_hours()
        start, end = default_span(options["by"], datetime.now(UTC), zone)
        asked = Asked(
            _in_zone(options["start"], zone) or start,
            _in_zone(options["end"], zone) or end,
            options["by"],
            zone,
            options["pool"],
            options["model"],
            options["currency"],
            _hosted(options["hosted"]),
        )
        if asked.start >= asked.end:
            raise CommandError("--from has to be before --to")
        found = report(asked)
        for line in [json.dumps(document(found), indent=2)] if options["json"] else _table(found):
            self.stdout.write(line)


def _table(found: Report) -> Iterator[str]:
    if not found.lines:
        yield "Nothing was sampled and nothing was used in this time."
        return
    cells = [list(COLUMNS), *(row(line, found.asked.by) for line in found.lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        aligned = (
            text.ljust(width) if name in _LEFT else text.rjust(width)
            for name, text, width in zip(COLUMNS, line, widths, strict=True)
        )
        yield "  ".join(aligned).rstrip()


def _hosted(words: list[str] | None) -> hosted.Hosted | None:
    if words is None:
        return None
    try:
        prices = [Decimal(word) for word in words[:2]]
        check_currency(words[2])
    except (InvalidOperation, ValidationError):
        prices = []
    if not prices or not all(price.is_finite() and price >= 0 for price in prices):
        raise CommandError("--hosted takes two prices per million tokens and a currency: 0.15 0.60 USD")
    return hosted.given(prices[0], prices[1], words[2])


def _zone(name: str) -> ZoneInfo:
    try:
        check_time_zone(name)
    except ValidationError as error:
        raise CommandError(f"--zone: {error.messages[0]}") from error
    return ZoneInfo(name)


def _moment(text: str) -> datetime | date:
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is neither a date (2026-03-31) nor a time (2026-03-31T12:00:00Z)") from None


def _in_zone(moment: datetime | date | None, zone: ZoneInfo) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
