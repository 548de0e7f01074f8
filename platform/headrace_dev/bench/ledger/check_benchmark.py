"""`bench ledger-check`: what a night's check of the books costs, as months of them are added."""

from typing import Any

from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say
from headrace_dev.bench.document import document
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.ledger.part import Found

_SIZES = {"tenants": 50, "keys": 200, "records": 100_000, "seed": 1}


class LedgerCheck(Benchmark):
    name = "ledger-check"
    help = "What the nightly check of the ledger costs at 1, 6 and 13 months, and what --all does."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenants", type=int, default=_SIZES["tenants"])
        parser.add_argument("--keys", type=int, default=_SIZES["keys"], help="of all tenants together")
        parser.add_argument("--records", type=int, default=_SIZES["records"], help="a month, about")
        parser.add_argument("--seed", type=int, default=_SIZES["seed"])

    def run(self, options: dict[str, Any], say: Say) -> Report:
        sizes = {name: options[name] for name in _SIZES}
        installation = Installation(document(0, upstream="http://127.0.0.1:9", model="model")[0], durable=True)
        try:
            say("setting up Headrace")
            installation.start()
            installation.tell("manage.py", "bench", "seed", "--json", *(f"--{name}={sizes[name]}" for name in sizes))
            inside = ("-m", "headrace_dev.bench.ledger.inside", "checking", str(sizes["tenants"]))
            found = Found.read(installation.tell(*inside))
        finally:
            installation.stop()
        return Report(self.name, sizes, found.rows, found.targets, found.notes)
