"""`manage.py budgets list|rebuild|reset`: how budgets stand; counting them anew; beginning a window anew."""

import getpass
import json
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from billing.amounts import plain
from billing.budgets.balances import Standing, standings
from billing.budgets.changing import reset_budget
from billing.budgets.counters import rebuild_all
from billing.models import Budget

_HEADINGS = ("BUDGET", "COUNTS", "PERIOD", "KIND", "AMOUNT", "SPENT", "HELD", "LEFT", "UNTIL")


class Command(BaseCommand):
    help = "Lists budgets, counts them anew from the ledger, or lets one begin anew."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="how each stands in its present window")
        listing.add_argument("--tenant")
        listing.add_argument("--format", choices=("table", "json"), default="table")
        rebuilding = verbs.add_parser("rebuild", help="makes counters anew from the ledger; running requests go on")
        rebuilding.add_argument("budget", nargs="*", metavar="TENANT/NAME", help="these alone (all)")
        resetting = verbs.add_parser("reset", help="lets the present window begin anew at nothing spent, on record")
        resetting.add_argument("budget", metavar="TENANT/NAME")
        resetting.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=30) as client:
                getattr(self, f"_{options['verb']}")(client, options)
        except (redis.RedisError, OperationalError) as error:
            raise CommandError(f"nothing is known of the counters: {str(error).strip()}") from error

    def _list(self, client: "redis.Redis", options: dict[str, Any]) -> None:
        budgets = Budget.objects.filter(enabled=True).select_related("tenant")
        if options["tenant"]:
            budgets = budgets.of(options["tenant"])
        found = standings(client, budgets)
        if options["format"] == "json":
            self.stdout.write(json.dumps([standing.as_object() for standing in found], indent=2))
            return
        if not found:
            self.stdout.write("No budgets.")
            return
        cells = [_HEADINGS, *map(_row, found)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    def _rebuild(self, client: "redis.Redis", options: dict[str, Any]) -> None:
        chosen = [_named(name) for name in options["budget"]] or None
        self.stdout.write(f"{rebuild_all(client, chosen)} counters made anew.")

    def _reset(self, client: "redis.Redis", options: dict[str, Any]) -> None:
        budget, who = _named(options["budget"]), getpass.getuser()
        adjustment = reset_budget(client, budget=budget, who=who, origin="manage.py budgets", reason=options["reason"])
        if adjustment is None:
            self.stdout.write(f"{budget}: nothing was spent.")
        else:
            self.stdout.write(f"{budget}: begins anew; adjustment {adjustment.pk} of {adjustment.nano} nano-units.")


def _named(name: str) -> Budget:
    tenant, _, budget = name.partition("/")
    found = Budget.objects.of(tenant).filter(name=budget).select_related("tenant").first()
    if found is None:
        raise CommandError(f"there is no budget {name}; it is named TENANT/NAME")
    return found


def _row(standing: Standing) -> tuple[str, ...]:
    budget = standing.budget
    scope = [f"{kind} {name}" for kind in ("project", "key", "model") if (name := getattr(budget, kind))]
    money = [
        "rebuilding" if amount is None else plain(amount)
        for amount in (standing.amount, standing.spent, standing.held, standing.left)
    ]
    until = "-" if standing.window.is_endless else standing.window.end.isoformat(timespec="minutes")
    kind = "hard" if budget.hard else "soft"
    money[3] += f" {budget.tenant.currency}"
    return (str(budget), ", ".join(scope) or "all", budget.period, kind, *money, until)
