"""`manage.py prices`: what holds and what is to come; `manage.py prices import FILE.csv`: a new price list."""

import json
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models import Price
from headrace.apply import ApplyError, apply_prices
from headrace.apply.prices import COLUMNS, current_prices
from headrace.command_line import operators_name
from routing.models import Model


class Command(BaseCommand):
    help = (
        "Without a verb, lists the prices in force and to come, in units of their currency per million tokens. "
        f"`import` reads a CSV whose first line names columns of {', '.join(COLUMNS)}: one without effective_from is "
        "the price from now on, and one that says what holds already is no change. None in force is ever changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.set_defaults(json=False, dry_run=False)
        verbs = parser.add_subparsers(dest="verb", title="verbs")
        listing = verbs.add_parser("list", help="the prices in force and to come (without a verb, too)")
        for one in (parser, listing):
            one.add_argument("--json", action="store_true", default=SUPPRESS, help="list as JSON")
        importing = verbs.add_parser("import", help="bring the prices to what a CSV file says")
        importing.add_argument("file", help="the CSV file to import")
        for one in (parser, importing):
            one.add_argument(
                "--dry-run", action="store_true", default=SUPPRESS, help="print what would change and write nothing"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "import":
            self._import(options["file"], dry_run=options["dry_run"])
        else:
            self._list(as_json=options["json"])

    def _import(self, file: str, *, dry_run: bool) -> None:
        try:
            text = Path(file).read_text("utf-8-sig")
            result = apply_prices(text, source=file, actor=operators_name(), dry_run=dry_run)
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise CommandError(f"{file}:{line}: not UTF-8; save it as “CSV UTF-8”") from error
        except ApplyError as error:
            raise CommandError(str(error)) from error
        for change in result.changes:
            self.stdout.write(change.told)
        if dry_run or not result.changes:
            self.stdout.write("dry run: nothing was written" if result.changes else "no changes")

    def _list(self, *, as_json: bool) -> None:
        models = list(Model.objects.order_by("name"))
        prices = current_prices(models)
        rows = [_values(price) for model in models for price in prices.get(model.name, [])]
        if as_json:
            self.stdout.write(json.dumps(rows, indent=2))
            return
        for model in models:
            if model.name not in prices:
                self.stdout.write(f"{model.name}: no price")
        for row in rows:
            where = f" at {row['target']}" if row["target"] else ""
            whom = f" for {row['tenant']}" if row["tenant"] else ""
            since = "" if row["in_force"] else f"  from {row['effective_from']}"
            self.stdout.write(
                f"{row['version']}{where}{whom}: {row['input']} input, {row['cached_input']} cached, {row['output']}"
                f" output {row['currency']} per million tokens{since}"
            )


def _values(price: Price) -> dict[str, Any]:
    rates = ("input", "cached_input", "output", "cache_hit")
    return {
        "version": price.version,
        **{name: getattr(price, name) for name in ("model", "target", "tenant", "currency")},
        **{name: None if (rate := getattr(price, name)) is None else format(rate.normalize(), "f") for name in rates},
        "effective_from": price.effective_from.isoformat(),
        "in_force": price.is_in_force,
    }
